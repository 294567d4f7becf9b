package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
)

// The exit codes.
const (
	exitOK           = 0
	exitError        = 1
	exitChanges      = 2
	exitNotConverged = 3
	exitRefused      = 4
)

// exitCodes is the only table of exit codes. The help of the commands quotes it.
var exitCodes = []struct {
	code int
	when string
	// only names the command that uses the code, empty for all commands.
	only string
}{
	{exitOK, "done", ""},
	{exitError, "error", ""},
	{exitError, "a target fails", "status"},
	{exitError, "a scope or source has had no owner for a minute, or the engine does not answer or rejects writes", "members"},
	{exitError, "the plan has an error or a conflict", "plan"},
	{exitError, "the plan has an error or a conflict, or the fleet could not be copied", "simulate"},
	{exitError, "a created resource could not be deleted", "doctor"},
	{exitChanges, "AWS behaves differently than weir assumes", "doctor"},
	{exitChanges, "the plan has changes (with --detailed-exitcode)", "plan"},
	{exitChanges, "the plan has changes (with --detailed-exitcode)", "simulate"},
	{exitNotConverged, "not converged within --timeout (with --wait)", "apply"},
	{exitNotConverged, "the request is stored, and the member has not followed it yet", "drain"},
	{exitNotConverged, "the request is stored, and the member does not own the scope yet", "take"},
	{exitRefused, "a conflict, a limit or a hold stopped a step, or the user answered no", "apply"},
	{exitRefused, "a conflict or a hold stopped an adoption, or --yes was missing", "adopt"},
	{exitRefused, "none of the selected resources can be imported; the report shows why", "import"},
	{exitRefused, "the pull request is open, and a part of the change must be written by hand", "accept"},
}

// gravity orders the codes by precedence if several apply: 1, then 4, then 3 or 2.
var gravity = []int{exitError, exitRefused, exitNotConverged, exitChanges}

// gravest returns the code to exit with if several apply.
func gravest(codes ...int) int {
	for _, g := range gravity {
		for _, c := range codes {
			if c == g {
				return c
			}
		}
	}
	return exitOK
}

// exitHelp returns the part of a command's help that lists its exit codes.
func exitHelp(command string) string {
	var b strings.Builder
	b.WriteString("\nExit codes:\n")
	for _, e := range exitCodes {
		if e.only == "" || e.only == command {
			fmt.Fprintf(&b, "  %d  %s\n", e.code, e.when)
		}
	}
	if command == "apply" {
		b.WriteString("If several apply, the exit code is the first of 1, 4, 3.\n")
	}
	return b.String()
}

// codeError ends the command with a code. The command must already have printed its message.
type codeError int

// Error returns the code, for tests.
func (c codeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// withCode converts a code to an error, nil for success.
func withCode(code int) error {
	if code == exitOK {
		return nil
	}
	return codeError(code)
}

// hinted adds a remedy to an error.
func hinted(err error, hint string) error { return advice.Hinted(err, hint) }

// usage returns an error about the command line.
func usage(hint, format string, args ...any) error { return advice.Usage(hint, format, args...) }

// exitCode returns the exit code for the error of a command, and the error and hint to print on standard
// error.
func exitCode(err error) (code int, text, hint string) {
	var done codeError
	var hinted *advice.Error
	switch {
	case err == nil:
		return exitOK, "", ""
	case errors.As(err, &done):
		return int(done), "", ""
	case errors.As(err, &hinted):
		hint = hinted.Hint
	}
	if errors.Is(err, context.Canceled) {
		return exitError, "interrupted", ""
	}
	return exitError, err.Error(), hint
}
