//go:build !linux || !(386 || amd64 || arm || arm64 || loong64 || riscv64)

package reader

import (
	"errors"
	"runtime"
)

// openEvdev is for Linux on the processors that gates have: elsewhere the kernel's
// requests have other numbers.
func openEvdev(string, layout) (source, error) {
	return source{}, errors.New("a keyboard reader needs Linux on ARM, x86, RISC-V or LoongArch, and this is " + runtime.GOOS + " on " + runtime.GOARCH)
}
