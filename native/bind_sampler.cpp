// Bindings of sampling: per-row lists of arrays become rows of pointers, checked against V here.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind_backend.h"
#include "octavo/sampler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace octavo {

namespace {

template <class T, int kDims>
using array = nb::ndarray<const T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
using ids = array<int32_t, 1>;
using values = array<float, 1>;

// Lists that few rows have: (row, arrays).
struct row_lists {
    std::vector<std::tuple<int64_t, ids, ids>> history;
    std::vector<std::tuple<int64_t, ids, values>> bias;
    std::vector<std::tuple<int64_t, ids>> allowed, allowed_bits, logprob_ids;
};

std::span<const int32_t> checked_ids(const ids& list, int64_t v, const char* name) {
    for (size_t i = 0; i < list.size(); ++i) {
        if (list.data()[i] < 0 || list.data()[i] >= v) {
            throw shape_error(std::string("sample: ") + name + " holds " + std::to_string(list.data()[i]) +
                              ", which is not below V = " + std::to_string(v));
        }
    }
    return {list.data(), list.size()};
}

void attach_lists(std::vector<sample_row>& rows, const row_lists& lists, int64_t v) {
    for (const auto& [row, prompt, output] : lists.history) {
        sample_row& r = rows.at(static_cast<size_t>(row));
        r.has_history = true;
        r.prompt_ids = checked_ids(prompt, v, "history");
        r.output_ids = checked_ids(output, v, "history");
    }
    for (const auto& [row, token_ids, added] : lists.bias) {
        shape_check check("sample");
        check.bind("bias", static_cast<int64_t>(token_ids.size()), "ids");
        check.bind("bias", static_cast<int64_t>(added.size()), "values");
        sample_row& r = rows.at(static_cast<size_t>(row));
        r.bias_ids = checked_ids(token_ids, v, "bias");
        r.bias_values = {added.data(), added.size()};
    }
    for (const auto& [row, token_ids] : lists.allowed) {
        rows.at(static_cast<size_t>(row)).has_allowed = true;
        rows.at(static_cast<size_t>(row)).allowed_ids = checked_ids(token_ids, v, "allowed");
    }
    for (const auto& [row, bits] : lists.allowed_bits) {
        shape_check check("sample");
        check.bind("ceil(V / 32)", (v + 31) / 32, "logits");
        check.bind("ceil(V / 32)", static_cast<int64_t>(bits.size()), "allowed_bits");
        rows.at(static_cast<size_t>(row)).allowed_bits = bits.data();
    }
    for (const auto& [row, token_ids] : lists.logprob_ids) {
        rows.at(static_cast<size_t>(row)).has_logprob_ids = true;
        rows.at(static_cast<size_t>(row)).logprob_ids = checked_ids(token_ids, v, "logprob_token_ids");
    }
}

template <class T>
nb::object to_numpy(const std::vector<T>& source) {
    auto* const copy = new T[source.size() > 0 ? source.size() : 1];
    std::memcpy(copy, source.data(), source.size() * sizeof(T));
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T>(copy, {source.size()}, owner).cast();
}

// (ids, logprobs, ranks), or None for a row that asked for nothing.
nb::object described_as_tuple(const std::vector<described_token>& tokens) {
    if (tokens.empty()) return nb::none();
    std::vector<int32_t> token_ids, ranks;
    std::vector<float> logprobs;
    for (const described_token& token : tokens) {
        token_ids.push_back(token.id);
        logprobs.push_back(token.logprob);
        ranks.push_back(token.rank);
    }
    return nb::make_tuple(to_numpy(token_ids), to_numpy(logprobs), to_numpy(ranks));
}

struct row_scalars {
    values temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
    ids top_k, num_logprobs;
    array<uint64_t, 1> seeds;
    array<int64_t, 1> positions;
};

std::vector<sample_row> make_rows(const row_scalars& s, int64_t num_rows) {
    shape_check check("sample");
    check.bind("R", num_rows, "logits");
    for (const values* list :
         {&s.temperature, &s.top_p, &s.min_p, &s.repetition_penalty, &s.frequency_penalty, &s.presence_penalty}) {
        check.bind("R", static_cast<int64_t>(list->size()), "a parameter");
    }
    for (const ids* list : {&s.top_k, &s.num_logprobs}) {
        check.bind("R", static_cast<int64_t>(list->size()), "a parameter");
    }
    check.bind("R", static_cast<int64_t>(s.seeds.size()), "seeds");
    check.bind("R", static_cast<int64_t>(s.positions.size()), "positions");
    std::vector<sample_row> rows(static_cast<size_t>(num_rows));
    for (size_t r = 0; r < rows.size(); ++r) {
        sample_row& row = rows[r];
        row.temperature = s.temperature.data()[r];
        row.top_p = s.top_p.data()[r];
        row.min_p = s.min_p.data()[r];
        row.repetition_penalty = s.repetition_penalty.data()[r];
        row.frequency_penalty = s.frequency_penalty.data()[r];
        row.presence_penalty = s.presence_penalty.data()[r];
        row.top_k = s.top_k.data()[r];
        row.num_logprobs = s.num_logprobs.data()[r];
        row.seed = s.seeds.data()[r];
        row.position = s.positions.data()[r];
    }
    return rows;
}

nb::tuple sample(backend& self, const array<float, 2>& logits, const row_scalars& scalars, const row_lists& lists) {
    const auto num_rows = static_cast<int64_t>(logits.shape(0)), v = static_cast<int64_t>(logits.shape(1));
    std::vector<sample_row> rows = make_rows(scalars, num_rows);
    attach_lists(rows, lists, v);
    std::vector<sampled_row> sampled;
    {
        const nb::gil_scoped_release release;
        sampled = sample_rows(self, logits.data(), v, rows);
    }
    std::vector<int32_t> token_ids;
    std::vector<uint8_t> outcomes;
    nb::list described;
    for (const sampled_row& row : sampled) {
        token_ids.push_back(row.token_id);
        outcomes.push_back(static_cast<uint8_t>(row.outcome));
        described.append(described_as_tuple(row.described));
    }
    return nb::make_tuple(to_numpy(token_ids), to_numpy(outcomes), nb::tuple(described));
}

}  // namespace

void bind_sampler(nb::module_& m) {
    nb::class_<row_scalars>(m, "RowScalars")
        .def(
            "__init__",
            [](row_scalars* self, const values& temperature, const ids& top_k, const values& top_p, const values& min_p,
               const values& repetition_penalty, const values& frequency_penalty, const values& presence_penalty,
               const array<uint64_t, 1>& seeds, const array<int64_t, 1>& positions, const ids& num_logprobs) {
                new (self) row_scalars{
                    temperature, top_p,        min_p, repetition_penalty, frequency_penalty, presence_penalty,
                    top_k,       num_logprobs, seeds, positions};
            },
            "temperature"_a.noconvert(), "top_k"_a.noconvert(), "top_p"_a.noconvert(), "min_p"_a.noconvert(),
            "repetition_penalty"_a.noconvert(), "frequency_penalty"_a.noconvert(), "presence_penalty"_a.noconvert(),
            "seeds"_a.noconvert(), "positions"_a.noconvert(), "num_logprobs"_a.noconvert());
    nb::class_<row_lists>(m, "RowLists")
        .def(nb::init<>())
        .def_rw("history", &row_lists::history)
        .def_rw("bias", &row_lists::bias)
        .def_rw("allowed", &row_lists::allowed)
        .def_rw("allowed_bits", &row_lists::allowed_bits)
        .def_rw("logprob_ids", &row_lists::logprob_ids);
    m.attr("NOT_FINITE") = static_cast<int>(sample_outcome::not_finite);
    m.attr("EXHAUSTED") = static_cast<int>(sample_outcome::exhausted);
    m.def("sample", sample, "ops"_a, "logits"_a.noconvert(), "scalars"_a, "lists"_a);
    m.def(
        "token_logprobs",
        [](backend& self, const array<float, 2>& logits, const ids& token_ids, int64_t num_top) {
            const auto v = static_cast<int64_t>(logits.shape(1));
            shape_check check("token_logprobs");
            check.bind("R", static_cast<int64_t>(logits.shape(0)), "logits");
            check.bind("R", static_cast<int64_t>(token_ids.shape(0)), "token_ids");
            const auto wanted = checked_ids(token_ids, v, "token_ids");
            std::vector<std::vector<described_token>> rows;
            {
                const nb::gil_scoped_release release;
                rows = describe_rows(self, logits.data(), v, wanted, num_top);
            }
            nb::list out;
            for (const auto& row : rows) out.append(described_as_tuple(row));
            return out;
        },
        "ops"_a, "logits"_a.noconvert(), "token_ids"_a.noconvert(), "num_top"_a);
}

}  // namespace octavo
