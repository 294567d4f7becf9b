// Command weir keeps pools of AWS machines in the state that Git describes.
//
// Package main is the only package that imports all others: it reads flags and configuration, connects
// sources, renders, accounts and status, and converts results to text and exit codes.
//
// It has more files than other packages, because each command has its own file, cmd_NAME.go. The other
// files are for the command line itself: surroundings, flags, output, questions and exit codes. A package
// per command would contain one file, and would have to export all of these. Package workspace does the
// work of commands, package client asks a daemon, and the domain packages are outside of cmd.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/weir-gitops/weir/render/kust/worker"
)

// version and commit are set by the linker.
var version, commit string

// memProfileRate is Go's default.
var memProfileRate = runtime.MemProfileRate

func main() {
	runtime.MemProfileRate = 0 // profiles can be requested only with --profile-listen
	os.Exit(process(surroundings{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}))
}

// process runs weir, or runs kustomize for another weir process. The first signal ends the context. A
// second signal ends the process at once.
func process(s surroundings) int {
	if worker.Asked() {
		return worker.Serve()
	}
	defer worker.Enable(worker.DefaultLimits)()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], s)
}
