package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/wording"
)

const membersPath = "/api/v1/members"

const (
	// moveFor is the timeout for moving work, and readFor the timeout for a read from the engine.
	moveFor = 40 * time.Second
	readFor = 10 * time.Second
)

const membersHelp = `Show which daemons share the work of an instance, and what each of them owns.

Any running daemon answers for all of them. With --config the command asks the daemon of
that configuration. If none answers, it reads the engine itself.

  OWNS   how many accounts and regions (scopes) and sources the member owns
  CLOCK  the difference between the member's clock and that of the member that answers
  SINCE  how long a scope or source has had its owner, or no owner

Members take scopes and sources without an owner within seconds. If one has no owner for
longer than a minute, that is a fault, and the exit code is 1. So is an engine that takes no
writes, or that has not answered for longer than a lease lasts.
`

func membersCommand(s surroundings) *cobra.Command {
	var f serverFlags
	var file, output string
	c := &cobra.Command{
		Use:   "members [--server URL | --config FILE] [flags]",
		Short: "show which daemons share the work, and who owns what",
		Long:  membersHelp + exitHelp("members"),
		Example: `  weir members
  weir members --config weir.yaml -o json
  weir members --server https://weir.example.com`,
		Args: noArguments,
	}
	f.add(c)
	c.Flags().StringVar(&file, "config", "", "configuration file of the daemon")
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, cfg, err := s.daemonFor(f, file)
		if err != nil {
			return err
		}
		v, err := askMembers(c.Context(), s, d, cfg)
		if err != nil {
			return err
		}
		now := time.Now()
		code := exitOK
		if v.Longest(now) > members.TooLong || v.Engine.Refused != "" || v.Away() {
			code = exitError
		}
		if output != outputText {
			return errors.Join(s.value(output, v), withCode(code))
		}
		if v.Engine.Kind == members.Alone {
			fmt.Fprintln(s.stdout, "One daemon, without coordination. Its records are in its state directory.")
			return nil
		}
		s.printer(s.stdout).Members(v, now)
		if v.Away() {
			lag := time.Duration(v.Engine.Lag * float64(time.Second)).Round(time.Second)
			fmt.Fprintf(s.stderr, "note: the engine has not answered this member for %s, so it owns nothing, and the output above is from before: %s\n", lag, wording.Clean(v.Engine.Error))
		} else if v.Engine.Error != "" {
			fmt.Fprintf(s.stderr, "note: the last call to the engine failed: %s\n", wording.Clean(v.Engine.Error))
		}
		if v.Engine.Refused != "" {
			fmt.Fprintf(s.stderr, "note: the engine rejects writes, so no member keeps its ownership: %s\n", wording.Clean(v.Engine.Refused))
		}
		for _, m := range v.Different() {
			fmt.Fprintf(s.stderr, "note: %s of %s: give all daemons the same configuration, because the owner of an account uses its own\n", strings.TrimPrefix(m.DifferText(), "its "), wording.Clean(m.Name))
		}
		for _, m := range v.Far() {
			fmt.Fprintf(s.stderr, "note: the clock of %s differs, and windows and approvals depend on it: correct it\n", wording.Clean(m.Name))
		}
		return withCode(code)
	}
	return c
}

// daemonFor returns the daemon that flags or a configuration name. The configuration is nil if none is
// given.
func (s surroundings) daemonFor(f serverFlags, file string) (client.Client, *config.Config, error) {
	if f.address != "" && file != "" {
		return client.Client{}, nil, usage("use only one of them", "--server and --config both choose the daemon")
	}
	var cfg *config.Config
	if file != "" {
		var err error
		if cfg, err = s.loadConfig(file); err != nil {
			return client.Client{}, nil, err
		}
	}
	d, err := s.daemonOf(f, cfg)
	return d, cfg, err
}

// askMembers asks a daemon, or reads the engine itself if none answers.
func askMembers(ctx context.Context, s surroundings, d client.Client, cfg *config.Config) (v members.View, err error) {
	err = d.Ask(ctx, membersPath, &v)
	switch {
	case err == nil && (v.Members == nil || v.Owned == nil):
		return v, d.NotWeir()
	case !errors.Is(err, syscall.ECONNREFUSED) || cfg == nil || !cfg.Several():
		return v, err
	}
	fmt.Fprintln(s.stderr, "note: no daemon answers at "+cfg.Listen+"; reading the engine")
	return readEngine(ctx, cfg)
}

// readEngine reads the owners from the engine itself. It returns everything that was ever owned, because
// only daemons know what should be owned.
func readEngine(ctx context.Context, cfg *config.Config) (v members.View, err error) {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	e, err := engine.Open(ctx, cfg, nil, nil)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	mirror := coord.NewMirror(e, state.LogPrefix)
	if err := mirror.Sync(ctx); err != nil {
		return v, hinted(fmt.Errorf("read the engine: %w", err), "check the engine, the connection and the credentials")
	}
	now := mirror.Snapshot()
	var w members.Watch
	w.See(time.Now(), "", now.Alive, now.Owners, nil)
	v = w.View()
	v.Engine.Kind, v.Engine.ID = cfg.Coordination.Engine(), now.Engine
	return v, nil
}

const drainHelp = `Make a daemon hand over everything that it owns, and take nothing until --undo. Use it
before work on the daemon's machine. Without MEMBER, the daemon that answers drains. The
remaining members take its work within about a second. It still answers requests.

A daemon that stops hands over by itself, so a restart needs no weir drain. The engine
stores the request: a member that is away follows it when it is back. A new process is
another member, and takes work.
`

// moveFlags contains the flags of commands that move work between members.
type moveFlags struct {
	commandFlags
	move commands.Move
}

func (f *moveFlags) add(c *cobra.Command, s surroundings) {
	f.commandFlags.add(c, s)
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.offer(c.Context(), s, c.Name() == "take"), cobra.ShellCompDirectiveNoFileComp
	}
}

// offer returns the names of members, or of their scopes and sources.
func (f *moveFlags) offer(ctx context.Context, s surroundings, owned bool) (out []cobra.Completion) {
	var cfg *config.Config
	if f.config != "" {
		cfg, _, _ = config.Load(f.config, s.env()) // with an invalid configuration, there are no completions
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var v members.View
	if d, err := s.daemonOf(f.serverFlags, cfg); err != nil || d.Ask(ctx, membersPath, &v) != nil {
		return nil
	}
	for _, o := range v.Owned {
		if owned {
			out = append(out, append([]string{o.Key}, o.Targets...)...)
		}
	}
	for _, m := range v.Members {
		if !owned {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// send asks the daemon to move work, and prints the result as formatted by words.
func (f *moveFlags) send(ctx context.Context, s surroundings, path string, words func(commands.Moved) string) error {
	d, cfg, err := s.daemonFor(f.serverFlags, f.config)
	if err != nil {
		return err
	}
	d.Patience = moveFor
	f.move.By = client.LocalUser()
	body, err := json.Marshal(f.move)
	if err != nil {
		return err
	}
	var out commands.Moved
	if body, err = d.Do(ctx, http.MethodPost, path, body, 1<<20); err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) && cfg != nil && cfg.Several() {
			err = hinted(err, "name any running daemon of the instance with --server; weir members --config lists them")
		}
		return err
	}
	if err := json.Unmarshal(body, &out); err != nil || out.Member == "" {
		return d.NotWeir()
	}
	code := exitOK
	if !out.Followed {
		code = exitNotConverged
	}
	if f.output != outputText {
		return errors.Join(s.value(f.output, out), withCode(code))
	}
	text := words(out)
	if !out.Followed {
		text = "stored, but not done yet: " + text
	}
	fmt.Fprintln(s.stdout, wording.Clean(text))
	return withCode(code)
}

func drainCommand(s surroundings) *cobra.Command {
	var f moveFlags
	c := &cobra.Command{
		Use:   "drain [MEMBER] [--undo] [flags]",
		Short: "make a daemon hand over everything that it owns",
		Long:  drainHelp + exitHelp("drain"),
		Example: `  weir drain
  weir drain weir-1-p3q9
  weir drain weir-1-p3q9 --undo`,
		Args: atMost(1),
	}
	f.add(c, s)
	c.Flags().BoolVar(&f.move.Undo, "undo", false, "let it take work again")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			f.move.Member = args[0]
		}
		return f.send(c.Context(), s, commands.DrainPath, func(out commands.Moved) string {
			switch {
			case out.Undo:
				return out.Member + " takes work again"
			case out.Left > 0:
				return fmt.Sprintf("%s hands over its scopes and sources, %d left", out.Member, out.Left)
			default:
				return out.Member + " owns nothing now, and takes nothing until weir drain --undo"
			}
		})
	}
	return c
}

const takeHelp = `Make a daemon own SCOPE for as long as the daemon runs: the daemon that answers, or the one
that --member names. The present owner hands it over in order.

SCOPE is an account and region such as 111111111111/eu-west-1, a source, or a target, which
stands for its account and region. weir members shows them. weir places scopes by itself, so
use this only if you have a reason to choose.
`

func takeCommand(s surroundings) *cobra.Command {
	var f moveFlags
	c := &cobra.Command{
		Use:   "take SCOPE [--member NAME] [flags]",
		Short: "make a daemon own an account and region, or a source",
		Long:  takeHelp + exitHelp("take"),
		Example: `  weir take 111111111111/eu-west-1
  weir take prod-eu --member weir-1-p3q9`,
		Args: exactly(1),
	}
	f.add(c, s)
	c.Flags().StringVar(&f.move.Member, "member", "", "member that will own it (default: the daemon that answers)")
	complete(c, "member", func(string) []string { return f.offer(c.Context(), s, false) })
	c.RunE = func(c *cobra.Command, args []string) error {
		f.move.Scope = args[0]
		return f.send(c.Context(), s, commands.TakePath, func(out commands.Moved) string { return out.Member + " owns " + out.Scope })
	}
	return c
}
