package turnstile

import "syscall"

// apart puts a keeper into a process group of its own, so that what stops or ends
// its parent's does not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
