// Command weir keeps pools of AWS machines at the level that Git says.
//
// Package main is the only one that knows every other package: it reads flags and configuration,
// wires sources, renders, accounts and status together, and turns results into text and exit codes.
//
// It has more files than other packages because each command has one of its own, cmd_NAME.go, next
// to the files of the command line itself: surroundings, flags and output, questions, exit codes. A
// package for each command would have to export all of that and would hold one file. Package work
// does the work of commands, package client asks a daemon, and the domain is outside of cmd.
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

// memProfileRate is Go's own.
var memProfileRate = runtime.MemProfileRate

func main() {
	runtime.MemProfileRate = 0 // no profile can be requested without --profile-listen
	os.Exit(process(surroundings{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}))
}

// process runs weir, or runs kustomize for another weir. The first signal ends the context; a second one ends the process at once.
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
