// By what one can tell the order of a kernel's threads, and which queries of hash grids are about their own points.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "transform/analysis/grid_order_conditions.h"

namespace weft::transform {
namespace {

OrderShows shows(const std::string& body) {
    const auto module = ir::parse(
        "struct @Pair = \"Pair\" \"pair.py:Pair\" { a: array<f32, 1>, b: array<f32, 1> }\n"
        "kernel @k(%n: array<i32, 1>, %x: array<f32, 1>, %y: array<f32, 1>, %p: struct @Pair, %id: u64) tid 1 {\n"
        "  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : i32\n  %f = constant 2 : f32\n"
        "  %j = load %n[%i]\n" +
        body + "  return\n}\n");
    ir::verify(*module);
    return order_shows(*module->functions.front());
}

TEST(Threads, what_each_has_to_itself_shows_nothing) {
    EXPECT_EQ(shows("  store %y[%i], %f\n"), OrderShows::nowhere);
    EXPECT_EQ(shows("  %v = load %x[%j]\n  %w = load %y[%i]\n  %s = add %v, %w\n  store %y[%i], %s\n"),
              OrderShows::nowhere);
    EXPECT_EQ(shows("  %b = extract %p[1]\n  %a = extract %p[0]\n  %v = load %a[%j]\n  store %b[%i], %v\n"),
              OrderShows::nowhere);
    EXPECT_EQ(shows("  %m = array_at %id, %one : array<f32, 1>\n"), OrderShows::nowhere);
}

TEST(Threads, what_others_read_or_write_shows_the_order) {
    EXPECT_EQ(shows("  store %y[%j], %f\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  store %y[%zero], %f\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %v = load %y[%j]\n  store %y[%i], %v\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %k = add %i, %one\n  %v = load %y[%k]\n  store %y[%i], %v\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %b = extract %p[1]\n  %v = load %b[%j]\n  store %b[%i], %v\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %m = array_at %id, %one : array<f32, 1>\n  store %m[%zero], %f\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %m = array_at %id, %one : array<f32, 1>\n  %v = load %m[%zero]\n  store %y[%i], %v\n"),
              OrderShows::in_results);
}

TEST(Threads, sums_show_it_in_their_rounding) {
    EXPECT_EQ(shows("  %a = atomic.add %y[%j], %f\n  %b = atomic.sub %y[%zero], %f\n"), OrderShows::in_rounding);
    EXPECT_EQ(shows("  %a = atomic.add %n[%zero], %one\n"), OrderShows::in_results);  // which is read
    EXPECT_EQ(shows("  %a = atomic.max %y[%j], %f\n"), OrderShows::nowhere);
    EXPECT_EQ(shows("  %a = atomic.add %y[%i], %f\n"), OrderShows::nowhere);
}

TEST(Threads, atomics_of_two_kinds_or_with_results_show_it) {
    EXPECT_EQ(shows("  %a = atomic.add %y[%j], %f\n  %b = atomic.max %y[%j], %f\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %a = atomic.add %y[%j], %f\n  store %y[%i], %f\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %a = atomic.max %y[%j], %f\n  store %x[%i], %a\n"), OrderShows::in_results);
    EXPECT_EQ(shows("  %a = atomic.exch %y[%j], %f\n"), OrderShows::in_results);
}

TEST(Threads, reports_show_it) { EXPECT_EQ(shows("  print \"%d\", %i\n"), OrderShows::in_results); }

// ---- queries ----

std::vector<OwnQuery> queries(const std::string& place) {
    const auto module = ir::parse(
        "struct @HashGridDescriptor = \"HashGridDescriptor\" \"of the runtime\" { starts: array<i32, 1>, "
        "points: array<i32, 1>, groups: array<i32, 1>, inverse_width: f64, grouped: u64, dims: vec3<i32>, count: i32 "
        "}\n"
        "struct @Body = \"Body\" \"body.py:Body\" { mass: f32, at: vec3<f32> }\n"
        "struct @Cloud = \"Cloud\" \"cloud.py:Cloud\" { grid: u64, points: array<vec3<f32>, 1> }\n"
        "kernel @k(%x: array<vec3<f32>, 1>, %grid: u64, %bodies: array<struct @Body, 1>, %cloud: struct @Cloud, "
        "%ids: array<u64, 1>, %y: array<f64, 1>) tid 1 {\n"
        "  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : i32\n  %id = extract %cloud[0]\n" +
        place +
        "  %descriptor = array_at %o, %one : array<struct @HashGridDescriptor, 1>\n"
        "  %widths = member %descriptor[3]\n  %width = load %widths[%zero]\n"
        "  %first = extract %place[0]\n  %near = cast %first : f64\n  %far = add %near, %near\n"
        "  %cell = mul %far, %width\n  store %y[%i], %cell\n  return\n}\n");
    ir::verify(*module);
    return own_queries(*module->functions.front());
}

TEST(OwnQueries, places_of_the_threads_own_elements) {
    const Type vec3 = Type::vector(Scalar::f32, 3);
    EXPECT_EQ(queries("  %o = object %grid[3]\n  %place = load %x[%i]\n"),
              (std::vector<OwnQuery>{{{1, {}}, {0, {}}, {}, vec3}}));
    EXPECT_EQ(queries("  %o = object %id[3]\n  %points = extract %cloud[1]\n  %place = load %points[%i]\n"),
              (std::vector<OwnQuery>{{{3, {0}}, {3, {1}}, {}, vec3}}));
    EXPECT_EQ(queries("  %o = object %grid[3]\n  %ats = member %bodies[1]\n  %place = load %ats[%i]\n"),
              (std::vector<OwnQuery>{{{1, {}}, {2, {}}, {1}, vec3}}));
    EXPECT_EQ(queries("  %o = object %grid[3]\n  %body = load %bodies[%i]\n  %place = extract %body[1]\n"),
              (std::vector<OwnQuery>{{{1, {}}, {2, {}}, {1}, vec3}}));
}

TEST(OwnQueries, other_places_and_grids) {
    EXPECT_TRUE(queries("  %o = object %grid[3]\n  %place = load %x[%one]\n").empty());
    EXPECT_TRUE(queries("  %o = object %grid[3]\n  %k = add %i, %one\n  %place = load %x[%k]\n").empty());
    EXPECT_TRUE(queries("  %o = object %grid[3]\n  %place = constant splat(0) : vec3<f32>\n").empty());
    EXPECT_TRUE(queries("  %o = object %grid[2]\n  %place = load %x[%i]\n").empty());
    EXPECT_TRUE(queries("  %own = load %ids[%i]\n  %o = object %own[3]\n  %place = load %x[%i]\n").empty());
}

}  // namespace
}  // namespace weft::transform
