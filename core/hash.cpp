#include "core/hash.hpp"

#include <fcntl.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace kvsweep {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

std::string hex_of(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * count, '0');
  for (size_t i = 0; i < count; ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return text;
}

void require(int openssl_result) {
  if (openssl_result != 1) throw std::runtime_error("OpenSSL cannot compute SHA-256");
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length));
  return hex_of(digest.data(), length);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  // A pipe that nobody writes is empty, instead of never opening.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<std::FILE, FileCloser> file(descriptor < 0 ? nullptr
                                                                   : ::fdopen(descriptor, "rb"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return Error{code, "cannot read " + path + ": " + std::strerror(errno)};
  }
  Sha256 hash;
  std::vector<char> block(kBlockBytes);
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    hash.update({block.data(), count});
  }
  if (std::ferror(file.get())) {
    return io_error("cannot read " + path + ": " + std::strerror(errno));
  }
  return hash.hex();
}

}  // namespace kvsweep
