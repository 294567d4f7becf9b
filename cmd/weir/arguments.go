package main

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/status/wording"
)

// noArguments accepts no arguments.
func noArguments(c *cobra.Command, args []string) error { return between(0, 0)(c, args) }

// exactly accepts n arguments.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// atLeast accepts n arguments or more.
func atLeast(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return between(n, math.MaxInt)(c, args) }
}

// atMost accepts n arguments or fewer.
func atMost(n int) cobra.PositionalArgs { return between(0, n) }

// between accepts from least to most arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		needed := wording.Count(least, "argument")
		if most > least {
			needed = "at least " + needed
		}
		switch {
		case len(args) < least:
			return usage("usage: "+c.UseLine(), "%s needs %s, but got %s", name(c), needed, written(len(args)))
		case len(args) > most && most == 0:
			return usage("usage: "+c.UseLine(), "%s takes no arguments, but got %q", name(c), args[0])
		case len(args) > most:
			return usage("usage: "+c.UseLine(), "%s takes only %s: %q is too many", name(c), wording.Count(most, "argument"), args[most])
		}
		return nil
	}
}

// oneValid accepts one of the command's ValidArgs.
func oneValid(c *cobra.Command, args []string) error {
	if err := exactly(1)(c, args); err != nil {
		return err
	}
	if !slices.Contains(c.ValidArgs, args[0]) {
		return usage(advice.DidYouMean(args[0], c.ValidArgs, "usage: "+c.UseLine()), "%s does not know %q", name(c), args[0])
	}
	return nil
}

// name returns the name of a command without that of the program, which starts each message.
func name(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") }

// written formats the number of given arguments.
func written(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}
