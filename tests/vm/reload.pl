# SPDX-License-Identifier: BSD-3-Clause
# reload.pl MODULE TIMES: loads, starts and unloads the module that often, every other time without a stop, and
# prints how often it did.
# One process, because starting one costs the debug kernel more than all of that.
use strict;
use warnings;
use Time::HiRes 'sleep';

use constant { FINIT_MODULE => 313, DELETE_MODULE => 176 };
# Of kernel-module/format/src/abi/command.rs.
use constant { RESET => 0x4008b701, START => 0xb702, STOP => 0xb703 };

my ($module, $times) = @ARGV;
$| = 1;
open my $file, '<', $module or die "$module: $!\n";
for my $n (1 .. $times) {
    syscall(FINIT_MODULE, fileno $file, my $parameters = 'tracemb=2', 0) == 0 or die "load $n: $!\n";
    open my $device, '+<', '/dev/kutrace' or die "/dev/kutrace: $n: $!\n";
    ioctl $device, RESET, my $setup = pack 'LL', 0, 0 or die "reset $n: $!\n";
    ioctl $device, START, 0 or die "start $n: $!\n";
    sleep 0.02;
    $n % 2 or ioctl $device, STOP, 0 or die "stop $n: $!\n";
    close $device;
    syscall(DELETE_MODULE, my $name = 'kutrace', 0) == 0 or die "unload $n: $!\n";
    print "$n\n" unless $n % 10;
}
