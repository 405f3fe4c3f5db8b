#include <gtest/gtest.h>

#include <thread>

#include "support/error.h"
#include "types/layout.h"

namespace weft {
namespace {

TEST(Type, made_twice_is_the_same) {
    EXPECT_EQ(Type::vector(Scalar::f32, 3), Type::vector(Scalar::f32, 3));
    EXPECT_EQ(Type::tuple({f32_type(), i32_type()}), Type::tuple({f32_type(), i32_type()}));
    EXPECT_EQ(Type::array(f32_type(), 2), Type::array(f32_type(), 2));
    EXPECT_NE(Type::vector(Scalar::f32, 4), Type::quaternion(Scalar::f32));
    EXPECT_NE(Type::vector(Scalar::f32, 3), Type::matrix(Scalar::f32, 3, 1));
    EXPECT_NE(Type::array(f32_type(), 1), Type::array(f32_type(), 2));
    EXPECT_EQ(Type(), Type::none());
    EXPECT_NE(Type(), Type::string());
}

TEST(Type, is_interned_by_many_threads_at_once) {
    constexpr int kThreads = 8;
    std::vector<std::vector<Type>> made(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&made, t] {
            for (int n = 1; n < 200; ++n)
                made[t].push_back(Type::array(Type::matrix(Scalar::f64, n, n + 1), n % 4 + 1));
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(made[t], made[0]);
}

TEST(Type, has_the_names_users_write) {
    EXPECT_EQ(f32_type().python_name(), "float32");
    EXPECT_EQ(Type::vector(Scalar::f32, 3).python_name(), "vec3f");
    EXPECT_EQ(Type::vector(Scalar::u8, 2).python_name(), "vec2ub");
    EXPECT_EQ(Type::vector(Scalar::f64, 5).python_name(), "vector(length=5, dtype=float64)");
    EXPECT_EQ(Type::vector(Scalar::bf16, 3).python_name(), "vector(length=3, dtype=bfloat16)");
    EXPECT_EQ(Type::matrix(Scalar::f64, 3, 3).python_name(), "mat33d");
    EXPECT_EQ(Type::matrix(Scalar::f32, 2, 3).python_name(), "matrix(shape=(2, 3), dtype=float32)");
    EXPECT_EQ(Type::quaternion(Scalar::f32).python_name(), "quatf");
    EXPECT_EQ(Type::transform(Scalar::f16).python_name(), "transformh");
    EXPECT_EQ(Type::array(Type::vector(Scalar::f32, 3), 2).python_name(), "array2d[vec3f]");
    EXPECT_EQ(Type::array(f32_type(), 1).python_name(), "array[float32]");
    EXPECT_EQ(Type::none().python_name(), "None");
    EXPECT_EQ(Type::tuple({f32_type(), i32_type()}).python_name(), "tuple[float32, int32]");
}

TEST(Type, is_read_back_from_its_ir_name) {
    std::vector<Type> types = {Type::none(), Type::string(), Type::tuple({})};
    for (const ScalarInfo& scalar : all_scalars()) {
        for (Type type : {Type::scalar(scalar.id), Type::vector(scalar.id, 7), Type::matrix(scalar.id, 2, 13),
                          Type::quaternion(scalar.id), Type::transform(scalar.id)}) {
            types.push_back(type);
            types.push_back(Type::array(type, 3));
            types.push_back(Type::tuple({type, Type::array(type, 1), Type::tuple({type})}));
        }
    }
    types.push_back(Type::structure("Particle", "test", {{"x", Type::vector(Scalar::f32, 3)}}));
    for (Type type : types) EXPECT_EQ(parse_ir_type(type.ir_name()), type) << type.ir_name();
    for (const char* text : {"", "f33", "vec<f32>", "vec3", "vec3<vec3<f32>>", "mat3<f32>", "vec0<f32>", "array<f32>",
                             "f32 f32", "struct @NoSuchStruct", "tuple<f32", "vec99999999999<f32>"}) {
        EXPECT_EQ(parse_ir_type(text), std::nullopt) << text;
    }
}

TEST(Type, asked_for_what_it_lacks_throws) {
    EXPECT_THROW(f32_type().element(), InternalError);
    EXPECT_THROW(Type::none().scalar(), InternalError);
    EXPECT_THROW(Type::array(f32_type(), 1).rows(), InternalError);
}

struct Mixed {
    std::uint8_t flag;
    float v[3];
    double d;
    std::int16_t s;
    ArrayView view;
    std::uint8_t last;
};

TEST(Type, lays_structs_out_as_c_does) {
    const Type type = Type::structure("Mixed", "test",
                                      {{"flag", bool_type()},
                                       {"v", Type::vector(Scalar::f32, 3)},
                                       {"d", f64_type()},
                                       {"s", Type::scalar(Scalar::i16)},
                                       {"view", Type::array(f32_type(), 2)},
                                       {"last", bool_type()}});
    const std::vector<Type::Field>& fields = type.fields();
    EXPECT_EQ(fields[1].offset, static_cast<std::int64_t>(offsetof(Mixed, v)));
    EXPECT_EQ(fields[2].offset, static_cast<std::int64_t>(offsetof(Mixed, d)));
    EXPECT_EQ(fields[3].offset, static_cast<std::int64_t>(offsetof(Mixed, s)));
    EXPECT_EQ(fields[4].offset, static_cast<std::int64_t>(offsetof(Mixed, view)));
    EXPECT_EQ(fields[5].offset, static_cast<std::int64_t>(offsetof(Mixed, last)));
    EXPECT_EQ(type.size_bytes(), static_cast<std::int64_t>(sizeof(Mixed)));
    EXPECT_EQ(type.alignment(), static_cast<std::int64_t>(alignof(Mixed)));
    EXPECT_EQ(type.field_index("s"), 3);
    EXPECT_EQ(type.field_index("nothing"), std::nullopt);
}

TEST(Type, structs_of_one_name_differ_by_key_and_fields) {
    const Type a = Type::structure("S", "a.py", {{"x", f32_type()}});
    EXPECT_EQ(a, Type::structure("S", "a.py", {{"x", f32_type()}}));
    EXPECT_NE(a, Type::structure("S", "b.py", {{"x", f32_type()}}));
    EXPECT_NE(a, Type::structure("S", "a.py", {{"x", f64_type()}}));
}

TEST(ArgumentLayout, aligns_each_parameter) {
    const std::vector<Type> types = {bool_type(), f64_type(), Type::vector(Scalar::u8, 3), Type::array(f32_type(), 1),
                                     i32_type()};
    const ArgumentLayout layout = argument_layout(types);
    EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{0, 8, 16, 24, 104}));
    EXPECT_EQ(layout.size_bytes, 108);
}

}  // namespace
}  // namespace weft
