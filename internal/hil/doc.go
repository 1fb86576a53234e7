// Package hil runs the gate on emulated boards: Debian's own kernels, the real
// drivers, the real daemon, and the lines seen and driven from outside, where the
// wires would be.
//
// A board is a QEMU machine that boots Debian's kernel with an initial file system
// of our own: the daemon, its configuration and a small program that does what the
// test asks for over the console (package talk). What happens on the pins is read
// and set through QEMU, past the board's kernel. The tests need QEMU and Debian's
// archive and are built with the tag hil; `make hil` runs them.
package hil
