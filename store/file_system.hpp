// Which file system a path lies on, as far as SQLite's locks and shared memory depend on it.
// Internal to store/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvsweep::store {

// Name of the network file system that `magic` (statfs f_type) stands for, "" = none. `fuse_type`
// is the type that /proc/self/mountinfo gives for a FUSE mount ("fuse.sshfs"), else "".
//
// NFS, SMB/CIFS, AFS, Ceph, GPFS, BeeGFS, Lustre, OCFS2, GFS2, 9P and the remote kinds of FUSE
// count as network: SQLite's WAL needs memory shared between processes, which two hosts do not
// have, and their locks cannot be relied on. overlayfs and local FUSE (fuse-overlayfs, ntfs-3g)
// do not.
std::string_view network_fs_name(int64_t magic, std::string_view fuse_type);

// The type in the line of `mountinfo` (text of /proc/self/mountinfo) whose mount point is the
// longest prefix of the absolute `path`; "" = none.
std::string mount_type(std::string_view mountinfo, std::string_view path);

// For an existing folder. "" = local, or unknown.
std::string network_fs_of(const std::string& folder);

bool on_read_only_fs(const std::string& folder);

}  // namespace kvsweep::store
