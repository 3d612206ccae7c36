// The kernels of every level built in that runs here, and the host around them, against double precision references.
//
// Prints how many results were compared, and the fingerprint of their bits. Exit status 0: all held.
#include <cinttypes>
#include <cstdio>

#include "checks.h"
#include "octavo/select_kernels.h"

using namespace octavo;

int main() {
    int64_t num_failures = 0;
    for (const std::string& level : runnable_levels()) {
        checks::report out;
        const kernel_table& kernels = select_kernels(level);
        checks::check_linear(out, kernels);
        checks::check_rows(out, kernels);
        checks::check_rotary(out, kernels);
        checks::check_attention(out, kernels);
        checks::check_vocabulary(out, kernels);
        checks::check_draws(out, kernels);
        checks::check_backend(out, level.c_str());
        checks::check_decoder(out, level.c_str());
        checks::check_storage(out);
        std::printf("%s: %" PRId64 " compared, %" PRId64 " failed, fingerprint %016" PRIx64 "\n", level.c_str(),
                    out.num_compared(), out.num_failures(), out.fingerprint());
        num_failures += out.num_failures();
    }
    return num_failures == 0 ? 0 : 1;
}
