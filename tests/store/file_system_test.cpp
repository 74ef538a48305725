#include "store/file_system.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

// Numbers of statfs(2), and of linux/magic.h.
TEST(FileSystem, KnowsNetworkFileSystems) {
  EXPECT_EQ(network_fs_name(0x6969, ""), "NFS");
  EXPECT_EQ(network_fs_name(0xFF534D42, ""), "CIFS");
  EXPECT_EQ(network_fs_name(0x0BD00BD0, ""), "Lustre");
  // f_type is a signed word on some machines: the same 32 bits.
  EXPECT_EQ(network_fs_name(static_cast<int32_t>(0xFF534D42), ""), "CIFS");
  EXPECT_EQ(network_fs_name(0xEF53, ""), "");      // ext4
  EXPECT_EQ(network_fs_name(0x01021994, ""), "");  // tmpfs
  EXPECT_EQ(network_fs_name(0x794C7630, ""), "");  // overlayfs
  EXPECT_EQ(network_fs_name(0x9123683E, ""), "");  // btrfs
}

TEST(FileSystem, TellsRemoteFuseFromLocal) {
  EXPECT_EQ(network_fs_name(0x65735546, "fuse.sshfs"), "sshfs");
  EXPECT_EQ(network_fs_name(0x65735546, "fuse.glusterfs"), "glusterfs");
  EXPECT_EQ(network_fs_name(0x65735546, "fuse.fuse-overlayfs"), "");
  EXPECT_EQ(network_fs_name(0x65735546, "fuseblk"), "");
}

TEST(FileSystem, FindsTheMountOfAPath) {
  const std::string mountinfo =
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "40 22 0:35 / /data rw - fuse.sshfs host:/x rw\n"
      "41 40 0:36 / /data/local rw shared:2 master:3 - xfs /dev/sdb rw\n"
      "42 22 0:37 / /with\\040space rw - nfs4 server:/y rw\n";
  EXPECT_EQ(mount_type(mountinfo, "/home/u"), "ext4");
  EXPECT_EQ(mount_type(mountinfo, "/data"), "fuse.sshfs");
  EXPECT_EQ(mount_type(mountinfo, "/data/a/b"), "fuse.sshfs");
  EXPECT_EQ(mount_type(mountinfo, "/data/local/b"), "xfs");
  EXPECT_EQ(mount_type(mountinfo, "/database"), "ext4");  // not below /data
  EXPECT_EQ(mount_type(mountinfo, "/with space/z"), "nfs4");
  EXPECT_EQ(mount_type("", "/x"), "");
}

TEST(FileSystem, TemporaryFolderIsLocalAndWritable) {
  test::TempDir dir;
  EXPECT_EQ(network_fs_of(dir.path().string()), "");
  EXPECT_FALSE(on_read_only_fs(dir.path().string()));
  EXPECT_EQ(network_fs_of("/does/not/exist"), "");
}

}  // namespace
}  // namespace kvsweep::store
