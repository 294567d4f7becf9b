package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

// The rules of output: standard output contains only the result. Progress, logs, errors and hints go to
// standard error. An error starts with "weir: " and has no full stop. Its remedy is in a line "hint: "
// below it.

// surroundings contains the parts of the process that tests can replace.
type surroundings struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// secrets contains the values to remove from all output. run creates it.
	secrets *redact.Registry
	// open is standard output without redaction, for output that was requested with its secrets.
	open io.Writer
	// color is auto, always or never. run sets it.
	color *string
	// clock and member are set for one of several daemons. nil and empty mean this machine's own.
	clock  coord.Clock
	member string
}

// guarded redacts secrets in everything that is written.
func (s surroundings) guarded() surroundings {
	s.color = new("auto")
	s.secrets, s.open = &redact.Registry{}, s.stdout
	s.stdout, s.stderr = s.secrets.Writer(s.stdout), s.secrets.Writer(s.stderr)
	return s
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s surroundings) int {
	s = s.guarded()
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.stdin)
	root.SetOut(s.stdout)
	root.SetErr(s.stderr)
	code, text, hint := exitCode(root.ExecuteContext(ctx))
	if text != "" {
		for line := range strings.Lines(text) {
			fmt.Fprintf(s.stderr, "weir: %s\n", wording.Clean(s.secrets.Redact(strings.TrimRight(line, "\n"))))
		}
	}
	if hint != "" {
		fmt.Fprintf(s.stderr, "hint: %s\n", terminal.CleanText(s.secrets.Redact(hint)))
	}
	return code
}

const rootHelp = `weir keeps pools of AWS machines in sync with Git: it renders Cluster API
machine-pool manifests with kustomize, plans, applies the plan to EC2 launch
templates, Auto Scaling groups and EKS nodegroups, and reports on the commit.

Try it without an account:

  weir demo                       everything on this machine, with a page to open
  weir validate PATH              check manifests, offline
  weir emulator --listen :8345    an emulated AWS to apply to
  weir apply PATH --region eu-west-1 --endpoint-url http://127.0.0.1:8345 --wait`

// newRoot returns the command weir with all its commands, its help and the flags that all commands share.
func newRoot(s surroundings) *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "keep pools of AWS machines in sync with Git",
		Long:          rootHelp,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "show the help of a command", RunE: func(c *cobra.Command, args []string) error {
		found, _, err := c.Root().Find(args)
		if err != nil || found == nil || found == c.Root() && len(args) > 0 {
			return unknownCommand(c.Root(), strings.Join(args, " "))
		}
		return found.Help()
	}})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return hinted(err, "see "+c.CommandPath()+" --help")
	})
	root.PersistentFlags().Var(choice{s.color, []string{"auto", "always", "never"}}, "color", "colours of the output; auto follows NO_COLOR and TERM")
	complete(root, "color", func(string) []string { return []string{"auto", "always", "never"} })
	root.AddCommand(
		runCommand(s), demoCommand(s), planCommand(s), simulateCommand(s), applyCommand(s), importCommand(s), adoptCommand(s), renderCommand(s), validateCommand(s), explainCommand(s),
		statusCommand(s), instanceCommand(s), reconcileCommand(s), suspendCommand(s), resumeCommand(s), approveCommand(s), unapproveCommand(s), acceptCommand(s), historyCommand(s), rolloutCommand(s), membersCommand(s), drainCommand(s), takeCommand(s), stateCommand(s), policyCommand(s), doctorCommand(s), emulatorCommand(s), schemaCommand(s), versionCommand(s), completionCommand(s),
	)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true
		for _, below := range c.Commands() {
			below.DisableFlagsInUseLine = true
		}
	}
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	return root
}

func unknownCommand(root *cobra.Command, name string) error {
	var known []string
	for _, c := range root.Commands() {
		known = append(known, c.Name())
	}
	return usage(advice.DidYouMean(name, known, "see weir --help"), "unknown command %q", name)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f := file(w)
	return f != nil && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// file returns the file that w writes to, nil if w is not a file.
func file(w io.Writer) *os.File {
	if below, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = below.Unwrap()
	}
	f, _ := w.(*os.File)
	return f
}

// printer returns a Printer for w. It uses colours only on a terminal that supports them.
func (s surroundings) printer(w io.Writer) terminal.Printer {
	p := terminal.Printer{W: w, Color: s.colored(w)}
	if f := file(w); f != nil && isTerminal(w) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			p.Width = width
		}
	}
	return p
}

// colored reports whether text on w has colours. It follows --color; by default, it returns true for a
// terminal that supports them.
func (s surroundings) colored(w io.Writer) bool {
	switch *s.color {
	case "always":
		return true
	case "never":
		return false
	}
	return isTerminal(w) && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}

// redraws reports whether lines on w can be overwritten.
func (s surroundings) redraws(w io.Writer) bool { return isTerminal(w) && s.getenv("TERM") != "dumb" }

// env returns the part of the surroundings that a configuration uses.
func (s surroundings) env() config.Env {
	return config.Env{Getenv: s.getenv, Root: os.Geteuid() == 0}
}

// loadConfig reads a configuration and prints its errors.
func (s surroundings) loadConfig(file string) (*config.Config, error) {
	c, faults, err := config.Load(file, s.env())
	if err != nil {
		hint := "--config names the configuration file"
		if errors.Is(err, fs.ErrPermission) {
			hint = "let the user who runs weir read it"
		}
		return nil, hinted(err, hint)
	}
	s.printer(s.stderr).Diagnostics(faults)
	if c == nil {
		return nil, usage("correct the lines above; weir schema config has all keys, and deploy/docs/reference/configuration.md explains them", "configuration %s: %s", file, terminal.CountDiagnostics(faults))
	}
	return c, nil
}

// failed returns the error to use after diagnostics have been printed.
func failed(what string, list diag.List) error {
	return errors.New(what + ": " + terminal.CountDiagnostics(list))
}
