#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "jit/disk_cache.h"
#include "jit/hash.h"

namespace weft::jit {
namespace {

namespace fs = std::filesystem;

class CacheFolder : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "weft-cache-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
        folder_ = root_ / "deep" / "cache";
    }
    void TearDown() override { fs::remove_all(root_); }

    std::vector<fs::path> files() const {
        std::vector<fs::path> found;
        if (fs::exists(folder_))
            for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
        return found;
    }
    fs::path root_, folder_;
};

Binary sample(int number, std::size_t size = 5000) {
    Binary binary;
    binary.code.assign(size, static_cast<std::byte>(number));
    binary.kernels.push_back({"kernel" + std::to_string(number), "symbol", 1});
    binary.key = hash_bytes("sample " + std::to_string(number));
    return binary;
}

TEST_F(CacheFolder, gives_back_what_was_stored) {
    DiskCache(folder_).store(sample(1));
    const auto loaded = DiskCache(folder_).load(sample(1).key);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->code, sample(1).code);
    EXPECT_EQ(loaded->kernels.at(0).name, "kernel1");
    EXPECT_FALSE(DiskCache(folder_).load(sample(2).key));
}

TEST_F(CacheFolder, leaves_no_temporary_files) {
    DiskCache(folder_).store(sample(1));
    DiskCache(folder_).store(sample(1));
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(CacheFolder, a_damaged_file_is_removed_and_can_be_stored_again) {
    DiskCache cache(folder_);
    for (const std::uintmax_t length : {0, 10, 3000}) {
        cache.store(sample(1));
        fs::resize_file(files().at(0), length);
        EXPECT_FALSE(cache.load(sample(1).key));
        EXPECT_TRUE(files().empty());
    }
    cache.store(sample(1));
    {
        std::fstream file(files().at(0), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(2000);
        file.put('x');
    }
    EXPECT_FALSE(cache.load(sample(1).key));
    cache.store(sample(1));
    EXPECT_TRUE(cache.load(sample(1).key));
}

TEST_F(CacheFolder, a_file_under_the_wrong_name_is_not_believed) {
    DiskCache cache(folder_);
    cache.store(sample(1));
    fs::copy_file(files().at(0), folder_ / (sample(2).key.hex() + ".weft"));
    EXPECT_FALSE(cache.load(sample(2).key));
    EXPECT_TRUE(cache.load(sample(1).key));
}

TEST_F(CacheFolder, is_made_again_when_it_was_deleted_while_running) {
    DiskCache cache(folder_);
    cache.store(sample(1));
    fs::remove_all(root_ / "deep");
    EXPECT_FALSE(cache.load(sample(1).key));
    cache.store(sample(1));
    EXPECT_TRUE(cache.load(sample(1).key));
}

TEST_F(CacheFolder, a_place_that_cannot_be_a_folder_costs_only_the_caching) {
    std::ofstream(root_ / "file") << "here";
    DiskCache cache(root_ / "file" / "cache");
    cache.store(sample(1));
    EXPECT_FALSE(cache.load(sample(1).key));
    cache.clear();
}

TEST_F(CacheFolder, a_read_only_folder_costs_only_the_caching) {
    if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
    DiskCache cache(folder_);
    cache.store(sample(1));
    fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
    cache.store(sample(2));
    EXPECT_TRUE(cache.load(sample(1).key));
    EXPECT_FALSE(cache.load(sample(2).key));
    fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(CacheFolder, is_for_its_owner_only) {
    ASSERT_TRUE(DiskCache(folder_).store(sample(1)));
    EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
    for (const auto& entry : fs::directory_iterator(folder_))
        EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
}

TEST_F(CacheFolder, is_not_used_where_others_can_write) {
    ASSERT_TRUE(DiskCache(folder_).store(sample(1)));
    EXPECT_EQ(DiskCache(folder_).problem(), "");
    for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
        fs::permissions(folder_, fs::perms::owner_all | others);
        EXPECT_NE(DiskCache(folder_).problem().find("can be written by others"), std::string::npos);
        EXPECT_FALSE(DiskCache(folder_).load(sample(1).key));
        EXPECT_FALSE(DiskCache(folder_).store(sample(2)));
    }
    fs::permissions(folder_, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
    EXPECT_TRUE(DiskCache(folder_).load(sample(1).key));
    EXPECT_FALSE(DiskCache(folder_).load(sample(2).key));
}

TEST_F(CacheFolder, clear_removes_the_entries_and_nothing_else) {
    DiskCache cache(folder_);
    cache.store(sample(1));
    cache.store(sample(2));
    std::ofstream(folder_ / "notes.txt") << "mine";
    cache.clear();
    EXPECT_EQ(files(), std::vector<fs::path>{folder_ / "notes.txt"});
}

TEST_F(CacheFolder, the_least_recently_used_go_when_it_grows_past_its_bound) {
    DiskCache cache(folder_, 100'000);
    for (int number = 0; number < 200; ++number) {
        cache.store(sample(number));
        // The first one is used all the time, and so it stays. File times may be as coarse as some milliseconds.
        if (number % 4 == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(12));
            EXPECT_TRUE(cache.load(sample(0).key)) << number;
        }
    }
    std::uintmax_t total = 0;
    for (const fs::path& file : files()) total += fs::file_size(file);
    EXPECT_LT(total, 100'000u + 64 * 6'000u);  // looked at once in 64 stores
    EXPECT_TRUE(cache.load(sample(0).key));
    EXPECT_TRUE(cache.load(sample(199).key));
    EXPECT_FALSE(cache.load(sample(1).key));
}

TEST_F(CacheFolder, sixteen_processes_started_cold_all_get_right_results) {
    std::vector<pid_t> children;
    for (int process = 0; process < 16; ++process) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60);
            DiskCache cache(folder_);
            bool is_right = true;
            for (int number = 0; number < 40; ++number) {
                const Binary wanted = sample(number, 20'000);
                if (const auto found = cache.load(wanted.key)) {
                    is_right =
                        is_right && found->code == wanted.code && found->kernels[0].name == wanted.kernels[0].name;
                } else {
                    cache.store(wanted);
                }
            }
            _exit(is_right ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    EXPECT_EQ(files().size(), 40u);
}

TEST(DefaultCacheFolder, follows_the_environment) {
    const char* const before = std::getenv("WARP_CACHE_PATH");
    const std::string saved = before != nullptr ? before : "";
    setenv("WARP_CACHE_PATH", "/some/where", 1);
    EXPECT_EQ(cache_folder().parent_path(), "/some/where");
    EXPECT_EQ(cache_folder("/chosen").parent_path(), "/chosen");
    unsetenv("WARP_CACHE_PATH");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    EXPECT_EQ(cache_folder().parent_path(), "/xdg/weft");
    unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(cache_folder().parent_path().filename(), "weft");
    if (before != nullptr) setenv("WARP_CACHE_PATH", saved.c_str(), 1);
}

}  // namespace
}  // namespace weft::jit
