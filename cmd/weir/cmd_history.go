package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/records"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/history"
)

const historyHelp = `Show events, newest first. With --passes, show the passes that did something, failed, or
changed the state of a target.

Without --config it asks a running daemon, at --server. With --config it asks the daemon of
that configuration. If none answers, it reads the state directory, or the engine that
several daemons share. weir keeps the newest 10,000 events and 2,000 passes of the last
30 days.
`

// historyFlags selects parts of the history, and the daemon to ask.
type historyFlags struct {
	serverFlags
	config, since string
	kinds         []string
	limit         int
	passes        bool
}

func historyCommand(s surroundings) *cobra.Command {
	var flags historyFlags
	var output string
	c := &cobra.Command{
		Use:   "history [--server URL | --config FILE] [TARGET|POOL…] [flags]",
		Short: "show what happened",
		Long:  historyHelp + exitHelp("history"),
		Example: `  weir history
  weir history prod --since 24h
  weir history default/web --kind version-created -o json
  weir history --config weir.yaml --passes`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c)
	c.Flags().StringVar(&flags.config, "config", "", "configuration file of the daemon")
	c.Flags().StringVar(&flags.since, "since", "", "show only newer entries: 90m, 24h, 7d, 2026-03-02 or 2026-03-02T12:00:00Z")
	c.Flags().StringArrayVar(&flags.kinds, "kind", nil, "only events of this `KIND`, such as drift-found; may be repeated")
	c.Flags().IntVar(&flags.limit, "limit", history.DefaultLimit, fmt.Sprintf("maximum number of entries, up to %d", history.MaxLimit))
	c.Flags().BoolVar(&flags.passes, "passes", false, "show passes instead of events")
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	complete(c, "kind", func(string) []string { return kinds.All() })
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 0)
	c.RunE = func(c *cobra.Command, args []string) error {
		filter, err := flags.filter(args, time.Now())
		if err != nil {
			return err
		}
		if flags.passes {
			list, err := readHistory(c.Context(), s, flags, filter, "/api/v1/history", (*history.Archive).Runs, func(a history.PassList) []history.Run { return a.Passes })
			if err == nil && len(list) == 0 {
				err = unknownNames(c.Context(), s, flags, args)
			}
			if err != nil || output != outputText {
				return errors.Join(err, printed(s, output, err, history.PassList{Passes: list}))
			}
			s.printer(s.stdout).Passes(list)
			return nil
		}
		list, err := readHistory(c.Context(), s, flags, filter, "/api/v1/events", (*history.Archive).Events, func(a history.EventList) []events.Event { return a.Events })
		if err == nil && len(list) == 0 {
			err = unknownKinds(flags.kinds)
		}
		unseen := slices.DeleteFunc(slices.Clone(args), func(name string) bool {
			about := history.Filter{About: []string{name}}
			return slices.ContainsFunc(list, about.WantsEvent)
		})
		if err == nil && len(unseen) > 0 {
			err = unknownNames(c.Context(), s, flags, unseen)
		}
		if err != nil || output != outputText {
			return errors.Join(err, printed(s, output, err, history.EventList{Events: list}))
		}
		s.printer(s.stdout).Events(list)
		return nil
	}
	return c
}

// unknownKinds returns an error if no event can have one of the kinds. It is called only if nothing was
// found, because another release may know more kinds.
func unknownKinds(wanted []string) error {
	for _, k := range wanted {
		if !slices.Contains(kinds.All(), k) {
			return usage("the kinds are "+strings.Join(kinds.All(), ", "), "unknown kind of event %q", k)
		}
	}
	return nil
}

// unknownNames returns an error if one of the names has no history, and no target or pool has that name.
// Otherwise, a mistyped name would look like one without events.
func unknownNames(ctx context.Context, s surroundings, flags historyFlags, wanted []string) error {
	if len(wanted) == 0 {
		return nil
	}
	all, err := readHistory(ctx, s, flags, history.Filter{Limit: history.MaxLimit}, "/api/v1/events", (*history.Archive).Events, func(a history.EventList) []events.Event { return a.Events })
	if err != nil {
		return err
	}
	now := loadNames(ctx, s, flags.config, flags.serverFlags)
	candidates := append(now.targets(), now.pools("")...)
	for _, e := range all {
		candidates = append(candidates, e.Target, e.Pool)
	}
	slices.Sort(candidates)
	candidates = slices.DeleteFunc(slices.Compact(candidates), func(c string) bool { return c == "" })
	for _, name := range wanted {
		if !slices.ContainsFunc(candidates, func(c string) bool { return c == name || strings.HasSuffix(c, "/"+name) }) {
			return usage(advice.DidYouMeanPool(name, candidates, "weir status shows all targets and pools"), "%q is unknown", name)
		}
	}
	return nil
}

// printed prints v as JSON or YAML, unless there already was an error.
func printed(s surroundings, output string, before error, v any) error {
	if before != nil {
		return nil
	}
	return s.value(output, v)
}

// filter validates the flags, and returns their filter.
func (f *historyFlags) filter(names []string, now time.Time) (history.Filter, error) {
	if f.address != "" && f.config != "" {
		return history.Filter{}, usage("use only one of them", "--server and --config both choose the daemon")
	}
	if f.limit < 1 || f.limit > history.MaxLimit {
		return history.Filter{}, usage(fmt.Sprintf("it is a number from 1 to %d", history.MaxLimit), "--limit cannot be %d", f.limit)
	}
	if f.passes && len(f.kinds) > 0 {
		return history.Filter{}, usage("use only one of them", "--kind selects events, and --passes shows passes")
	}
	out := history.Filter{About: names, Kinds: f.kinds, Limit: f.limit}
	if f.since == "" {
		return out, nil
	}
	var ok bool
	if out.Since, ok = parseSince(f.since, now); !ok {
		return history.Filter{}, usage("write it like 90m, 24h, 7d, 2026-03-02 or 2026-03-02T12:00:00Z", "--since cannot be %q", f.since)
	}
	return out, nil
}

// parseSince parses a time, or a duration before now.
func parseSince(text string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	d, ok := parseLength(text)
	return now.Add(-d), ok && d >= 0
}

// parseLength parses a duration, also in days of 24 hours.
func parseLength(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil //nolint:gosec // 16 bits of days are 179 years, which a duration holds
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// readHistory asks a daemon, or reads the daemon's files if none answers.
func readHistory[T, A any](ctx context.Context, s surroundings, flags historyFlags, f history.Filter, path string,
	read func(*history.Archive, history.Filter) ([]T, error), list func(A) []T,
) ([]T, error) {
	var cfg *config.Config
	if flags.config != "" {
		var err error
		if cfg, err = s.loadConfig(flags.config); err != nil {
			return nil, err
		}
	}
	d, err := s.daemonOf(flags.serverFlags, cfg)
	if err != nil {
		return nil, err
	}
	var answer A
	err = d.Ask(ctx, path+"?"+f.Query().Encode(), &answer)
	switch {
	case err == nil && list(answer) == nil:
		return nil, d.NotWeir()
	case err == nil:
		return list(answer), nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return nil, err
	case cfg == nil:
		return nil, hinted(err, "start weir run, or pass the daemon's address with --server, or its configuration with --config to read its history")
	}
	db, done, err := records.Read(ctx, cfg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hinted(fmt.Errorf("read history: no history in %s", records.Name(cfg)), "it starts when weir run starts with this configuration")
	case errors.Is(err, state.ErrInUse):
		return nil, hinted(err, "another process has the history open, but no daemon answers at "+d.Address+"; pass the daemon's address with --server")
	case err != nil:
		return nil, hinted(fmt.Errorf("no daemon answers at %s, and its history cannot be read: %w", d.Address, err), "start weir run, or pass the daemon's address with --server")
	}
	fmt.Fprintf(s.stderr, "no daemon answers; reading %s\n", records.Name(cfg))
	found, err := read(history.New(db, history.Options{}), f)
	return found, errors.Join(err, done())
}
