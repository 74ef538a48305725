#include "store/file_system.hpp"

#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <fstream>
#include <sstream>

namespace kvsweep::store {

namespace {

struct Magic {
  int64_t magic;
  std::string_view name;
};

// Values of the kernel's linux/magic.h and of the file systems' own headers.
constexpr Magic kNetworkFs[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},        {0xFE534D42, "SMB"},   {0xFF534D42, "CIFS"},
    {0x5346414F, "AFS"},    {0x6B414653, "AFS"},    {0x00C36400, "Ceph"},  {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0x0BD00BD0, "Lustre"}, {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"},
    {0x01021997, "9P"},     {0x73757245, "Coda"},   {0xAAD7AAEA, "PanFS"}, {0x786F4256, "vboxsf"},
    {0xBACBACBC, "vmhgfs"},
};
constexpr int64_t kFuse = 0x65735546;

constexpr std::string_view kRemoteFuse[] = {
    "sshfs",  "glusterfs", "s3fs",     "rclone",    "ceph",         "ceph-fuse",     "davfs",
    "davfs2", "goofys",    "gcsfuse",  "juicefs",   "JuiceFS",      "mountpoint-s3", "cvmfs2",
    "beegfs", "lustre",    "smbnetfs", "curlftpfs", "alluxio-fuse", "blobfuse",      "blobfuse2",
};

// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view field) {
  std::string out;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      out += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 +
                               (field[i + 3] - '0'));
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

bool lies_below(std::string_view path, std::string_view mount_point) {
  if (mount_point == "/") return true;
  return path.substr(0, mount_point.size()) == mount_point &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

std::string_view network_fs_name(int64_t magic, std::string_view fuse_type) {
  magic &= 0xffffffff;  // f_type is signed on some machines
  for (const Magic& entry : kNetworkFs) {
    if (entry.magic == magic) return entry.name;
  }
  if (magic != kFuse) return "";
  if (fuse_type.substr(0, 5) == "fuse.") fuse_type.remove_prefix(5);
  for (const std::string_view remote : kRemoteFuse) {
    if (remote == fuse_type) return remote;
  }
  return "";
}

std::string mount_type(std::string_view mountinfo, std::string_view path) {
  std::istringstream lines{std::string(mountinfo)};
  std::string line;
  std::string best_type;
  size_t best_length = 0;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string skipped, mount_point, field, type;
    fields >> skipped >> skipped >> skipped >> skipped >> mount_point;
    while (fields >> field && field != "-") {
    }
    fields >> type;
    mount_point = unescape(mount_point);
    // Of several mounts on one point the last one is seen.
    if (!type.empty() && lies_below(path, mount_point) && mount_point.size() >= best_length) {
      best_length = mount_point.size();
      best_type = type;
    }
  }
  return best_type;
}

std::string network_fs_of(const std::string& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return "";
  std::string fuse_type;
  if ((static_cast<int64_t>(info.f_type) & 0xffffffff) == kFuse) {
    std::ifstream file("/proc/self/mountinfo");
    std::stringstream text;
    text << file.rdbuf();
    fuse_type = mount_type(text.str(), folder);
  }
  return std::string(network_fs_name(info.f_type, fuse_type));
}

bool on_read_only_fs(const std::string& folder) {
  struct statvfs info {};
  return ::statvfs(folder.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

}  // namespace kvsweep::store
