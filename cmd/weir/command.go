package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/records"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/wording"
)

// commandFlags selects the daemon to ask.
type commandFlags struct {
	serverFlags
	config, output string
}

func (f *commandFlags) add(c *cobra.Command, s surroundings) {
	c.Flags().StringVar(&f.config, "config", "", "configuration file of the daemon")
	f.serverFlags.add(c)
	outputFlag(c, &f.output, outputText, outputJSON, outputYAML)
	c.ValidArgsFunction = completeFromDaemon(s, &f.config, &f.serverFlags, poolsNever)
}

// direct executes a command on the record itself, if no daemon has it open. It is nil if the command needs
// a daemon.
type direct func(*gates.Recorder, gates.Daemon, gates.Request) (gates.Answer, error)

// send sends a command to the daemon. If none runs, it executes the command in the state directory.
func (f *commandFlags) send(ctx context.Context, s surroundings, path string, r gates.Request, alone direct) (gates.Answer, error) {
	if f.address != "" && f.config != "" {
		return gates.Answer{}, usage("use only one of them", "--server and --config both choose the daemon")
	}
	r.By = client.LocalUser()
	var cfg *config.Config
	if f.config != "" {
		var err error
		if cfg, err = s.loadConfig(f.config); err != nil {
			return gates.Answer{}, err
		}
	}
	d, err := s.daemonOf(f.serverFlags, cfg)
	if err != nil {
		return gates.Answer{}, err
	}
	out, err := d.Post(ctx, path, r)
	switch {
	case !errors.Is(err, syscall.ECONNREFUSED):
		return out, err
	case alone == nil:
		return out, hinted(err, "this needs a daemon: start weir run, or name one with --server or --config")
	case cfg == nil:
		return out, hinted(err, "start weir run, name a daemon with --server, or give --config to write its records")
	}
	return onRecord(ctx, cfg, r, alone)
}

// onRecord executes a command on the records of daemons that are not running.
func onRecord(ctx context.Context, cfg *config.Config, r gates.Request, alone direct) (out gates.Answer, err error) {
	db, done, err := records.Open(ctx, cfg)
	if err != nil && cfg.Several() {
		return out, hinted(fmt.Errorf("no daemon answers at %s, and nothing was stored: %w", cfg.Listen, err), "name any running daemon of the instance with --server; weir members --config lists them")
	}
	if errors.Is(err, state.ErrInUse) {
		return out, hinted(err, "another process has the state open, but no daemon answers at "+cfg.Listen+"; see its log")
	} else if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	out, err = alone(gates.NewRecorder(db, clock.New().Moment), offline{cfg}, r)
	out.Stored = err == nil && cfg.Several()
	var wrong *gates.Fault
	if errors.As(err, &wrong) && wrong.Hint != "" {
		err = hinted(err, wrong.Hint)
	}
	if r.AfterLoss {
		return out, err
	}
	if file, is := db.(*state.DB); is {
		err = errors.Join(err, file.Lost())
	}
	return out, err
}

// offline implements gates.Daemon for a daemon that is not running.
type offline struct{ config *config.Config }

// Knows reports whether the configuration can contain a target with the name.
func (o offline) Knows(target string) bool { return o.config.MayHave(target) }

// Targets returns the targets that the configuration names without a wildcard.
func (o offline) Targets() (out []string) {
	for _, t := range o.config.Targets {
		out = append(out, t.Name)
	}
	return out
}

// Pools returns nil: without a daemon the pools are unknown.
func (o offline) Pools(string) []string { return nil }

// Planned returns nothing, because without a daemon no plans are known.
func (offline) Planned(string) ([]gates.Grant, []string, error) { return nil, nil, nil }

// Pass does nothing.
func (offline) Pass([]string) {}

// Reconcile does nothing, because there is no daemon to wake.
func (offline) Reconcile([]string, bool) ([]string, error) { return nil, nil }

// printAnswer prints a response as JSON or YAML, or calls words to print it as text.
func (f *commandFlags) printAnswer(s surroundings, out gates.Answer, words func()) error {
	if f.output == outputText {
		words()
		for _, line := range out.Receipt() {
			fmt.Fprintln(s.stdout, wording.Clean(line))
		}
		return nil
	}
	return s.value(f.output, out)
}

// named describes a target or a pool.
func named(target, pool string) string {
	if target == "" {
		return "everything"
	}
	if pool == "" {
		return "target " + target
	}
	return "pool " + pool + " of target " + target
}

// when formats a time.
func when(t time.Time) string { return t.Local().Format("Mon 2 Jan 15:04 MST") }
