// Runs part of a test in a child process: to kill it, to change its user, to mount for it alone.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace kvsweep::test {

struct ChildEnd {
  std::string said;   // what `body` returned
  int signal = 0;     // that killed it; 0 = it ended by itself
  int exit_code = 0;  // 0 = `body` returned
};

inline void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

inline std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t count;
  while ((count = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

struct Child {
  pid_t pid = 0;
  int from_child = -1;  // what the child wrote
};

// `body` gets the descriptor to write to. The child ends without the parent's destructors.
inline Child start_child(const std::function<void(int to_parent)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    int code = 0;
    try {
      body(ends[1]);
    } catch (const std::exception& exception) {
      write_all(ends[1], std::string("exception: ") + exception.what());
      code = 1;
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

inline ChildEnd end_of(const Child& child) {
  ChildEnd end;
  end.said = read_all(child.from_child);
  ::close(child.from_child);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

inline ChildEnd run_child(const std::function<std::string()>& body) {
  return end_of(start_child([&](int to_parent) { write_all(to_parent, body()); }));
}

inline bool write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return ok;
}

// In a child: mounts a tmpfs of `bytes` on `folder`, for this process alone. False where the
// system does not allow it.
inline bool mount_tmpfs(const std::string& folder, const std::string& options) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) {
    if (::unshare(CLONE_NEWNS) != 0) return false;
  } else {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_file("/proc/self/setgroups", "deny");
    if (!write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1")) return false;
    if (!write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) return false;
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

// In a child of root: becomes a user without rights. True at once for other users.
inline bool drop_root() {
  if (::geteuid() != 0) return true;
  constexpr int kNobody = 65534;
  return ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
}

}  // namespace kvsweep::test
