package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/waves"
	"github.com/weir-gitops/weir/status/wording"
)

const rolloutHelp = `Show what FleetRollouts roll out and wait for, and stop them.

A FleetRollout in Git defines the waves in which weir rolls pools. NAME is namespace/name,
or the name alone if it is unique. Any running daemon answers.

  pause  starts nothing new; shares that have started run to their end, as AWS cannot pause
         them
  abort  stops the change, as a failed gate does: weir cancels its own instance refreshes,
         and does not roll this change out again until a commit changes the launch
         configuration of these pools, or you run weir reconcile TARGET --retry
`

func rolloutCommand(s surroundings) *cobra.Command {
	c := &cobra.Command{Use: "rollout {list | show | pause | resume | abort}", Short: "show FleetRollouts, and stop them", Long: rolloutHelp + exitHelp("rollout"), Args: cobra.ArbitraryArgs}
	c.RunE = func(_ *cobra.Command, args []string) error {
		return usage("use list, show, pause, resume or abort; see weir help rollout", "rollout needs a known subcommand")
	}
	c.AddCommand(rolloutList(s), rolloutShow(s))
	for _, one := range []struct{ do, short, done string }{
		{"pause", "start nothing new of a rollout", "is paused"},
		{"resume", "end a pause", "goes on"},
		{"abort", "stop a change everywhere", "is stopped"},
	} {
		c.AddCommand(rolloutDo(s, one.do, one.short, one.done))
	}
	return c
}

// rolloutAsk contains the flags of a command that requests the list.
type rolloutAsk struct {
	serverFlags
	file, output string
}

func (f *rolloutAsk) on(c *cobra.Command) {
	f.add(c)
	c.Flags().StringVar(&f.file, "config", "", "configuration file of the daemon")
	outputFlag(c, &f.output, outputText, outputJSON, outputYAML)
}

// fetch requests the list of FleetRollouts from the daemon. A response without the list is not from weir.
func (f *rolloutAsk) fetch(c *cobra.Command, s surroundings) (list waves.List, err error) {
	d, _, err := s.daemonFor(f.serverFlags, f.file)
	if err != nil {
		return list, err
	}
	if err = d.Ask(c.Context(), commands.RolloutsPath, &list); err == nil && list.Rollouts == nil {
		err = d.NotWeir()
	}
	return list, err
}

// rolloutList returns the command weir rollout list.
func rolloutList(s surroundings) *cobra.Command {
	var f rolloutAsk
	c := &cobra.Command{
		Use: "list [--server URL | --config FILE] [flags]", Short: "list FleetRollouts and targets, and what they wait for",
		Long: "List FleetRollouts, with what they wait for, and the targets that wait by the\nconfiguration: for others that dependsOn names, or for the rollouts that\nmaxConcurrentRollouts allows at a time.\n" + exitHelp("rollout"), Args: noArguments,
		Example: "  weir rollout list\n  weir rollout list -o json",
	}
	f.on(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, err := f.fetch(c, s)
		if err != nil {
			return err
		}
		if f.output != outputText {
			return s.value(f.output, list)
		}
		if len(list.Rollouts) == 0 {
			fmt.Fprintln(s.stdout, "No FleetRollouts found.")
			return s.turns(list.Turns)
		}
		w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tSOURCE\tPHASE\tREVISION\tWAVE\tWAITS")
		for _, r := range list.Rollouts {
			fmt.Fprintln(w, cells(r.Name, r.Source, r.Phase, r.Revision[:min(7, len(r.Revision))], r.Wave, r.Waits))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		return s.turns(list.Turns)
	}
	return c
}

// turns prints the targets that wait for others, or for the rollouts of others.
func (s surroundings) turns(list []waves.Turn) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\nTARGET\tWAITS")
	for _, t := range list {
		fmt.Fprintln(w, cells(t.Target, t.Waits))
	}
	return w.Flush()
}

// cells formats fields as a line of a table.
func cells(fields ...string) string {
	for i, f := range fields {
		if fields[i] = wording.Clean(f); f == "" {
			fields[i] = "-"
		}
	}
	return strings.Join(fields, "\t")
}

// rolloutShow returns the command weir rollout show.
func rolloutShow(s surroundings) *cobra.Command {
	var f rolloutAsk
	c := &cobra.Command{
		Use: "show NAME [--server URL | --config FILE] [flags]", Short: "show the pools, gates and stops of a FleetRollout",
		Long: "Show the pools of a FleetRollout by waves, its gates with their last answers, and what was stopped.\n" + exitHelp("rollout"), Args: exactly(1),
		Example: "  weir rollout show default/nodes\n  weir rollout show nodes -o json",
	}
	f.on(c)
	c.ValidArgsFunction = completeRollouts(s, &f.file, &f.serverFlags)
	c.RunE = func(c *cobra.Command, args []string) error {
		list, err := f.fetch(c, s)
		if err != nil {
			return err
		}
		var found []waves.Rollout
		for _, r := range list.Rollouts {
			if r.Name == args[0] || strings.HasSuffix(r.Name, "/"+args[0]) {
				found = append(found, r)
			}
		}
		if len(found) == 0 {
			return hinted(fmt.Errorf("unknown rollout %q", args[0]), list.Nearest(args[0]))
		}
		if f.output != outputText {
			return s.value(f.output, waves.List{Rollouts: found, Turns: []waves.Turn{}})
		}
		for i, r := range found {
			if i > 0 {
				fmt.Fprintln(s.stdout)
			}
			if err := s.showRollout(r); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// completeRollouts completes the names of FleetRollouts.
func completeRollouts(s surroundings, file *string, server *serverFlags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var cfg *config.Config
		if *file != "" {
			cfg, _, _ = config.Load(*file, s.env()) // with an invalid configuration, there are no completions
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		var list waves.List
		if d, err := s.daemonOf(*server, cfg); err == nil && d.Ask(ctx, commands.RolloutsPath, &list) == nil {
			for _, r := range list.Rollouts {
				out = append(out, r.Name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s surroundings) showRollout(r waves.Rollout) error {
	s.rolloutFacts(r)
	return s.rolloutTables(r)
}

// clockTime formats a time.
func clockTime(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 MST") }

// rolloutFacts prints the state of a rollout as a whole.
func (s surroundings) rolloutFacts(r waves.Rollout) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(s.stdout, "%-9s %s\n", key, wording.Clean(value))
		}
	}
	word := func(key string, w *waves.Word) {
		if w != nil {
			line(key, "by "+w.By+", "+clockTime(w.At)+": "+cmp.Or(w.Why, "no reason is given"))
		}
	}
	line("name", r.Name)
	line("source", r.Source)
	line("phase", r.Phase)
	line("revision", r.Revision)
	if !r.Began.IsZero() {
		line("began", clockTime(r.Began))
	}
	if !r.Ended.IsZero() {
		line("ended", clockTime(r.Ended))
	}
	line("wave", r.At())
	if len(r.Empty) > 0 {
		line("empty", strings.Join(r.Empty, ", ")+": no pool of the change is in it, so it has no effect")
	}
	word("paused", r.Paused)
	word("stopped", r.Stopped)
	if r.Paused == nil && r.Stopped == nil {
		line("waits", r.Waits)
	}
	if len(r.Waves) > 0 {
		line("machines", r.Machines.Words())
		moves := wording.Count(int(r.Moves), "machine") + " being replaced"
		if r.MaxMachines > 0 {
			moves += fmt.Sprintf(", at most %d at a time", r.MaxMachines)
		}
		line("moves", moves)
		line("failed", fmt.Sprintf("%s, budget %d", wording.Count(r.Failed, "pool"), r.FailureBudget))
	}
	if !r.BakesUntil.IsZero() {
		line("bakes", "until "+clockTime(r.BakesUntil))
	}
	if r.BakeAhead > 0 {
		line("left", "at least "+(time.Duration(r.BakeAhead)*time.Second).String()+" of bake times")
	}
	for _, d := range r.Do {
		line("do", d)
	}
}

// rolloutTables prints the waves, pools, gates and stopped changes of a rollout.
func (s surroundings) rolloutTables(r waves.Rollout) error {
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	if len(r.Waves) > 0 {
		fmt.Fprintln(w, "\nWAVE\tSTATE\tPOOLS\tSHARES\tMACHINES")
		for _, one := range r.Waves {
			fmt.Fprintln(w, cells(one.Name, one.State, fmt.Sprint(one.Pools), shares(one.Shares), one.Machines.Words()))
		}
	}
	if len(r.Pools) > 0 {
		fmt.Fprintln(w, "\nWAVE\tTARGET\tPOOL\tMACHINES\tMAY ROLL\tREPLACING\tWAITS")
		for _, p := range r.Pools {
			fmt.Fprintln(w, cells(p.Wave, p.Target, p.Pool, p.Counts().Words(), fmt.Sprintf("%d %%", p.Share), fmt.Sprint(p.Moves), cmp.Or(p.Failed, p.Waits)))
		}
	}
	if len(r.Gates) > 0 {
		fmt.Fprintln(w, "\nGATE\tCHECK\tRESULT\tCHECKED\tDETAILS")
		for _, g := range r.Gates {
			asked := ""
			if !g.At.IsZero() {
				asked = clockTime(g.At)
			}
			fmt.Fprintln(w, cells(g.Name, g.Asks, g.Verdict, asked, g.What))
		}
	}
	if len(r.Bad) > 0 {
		fmt.Fprintln(w, "\nSTOPPED\tPOOL\tHASH\tSET\tWHY")
		for _, b := range r.Bad {
			fmt.Fprintln(w, cells(b.Target, b.Pool, b.Hash, b.Fields, b.Why))
		}
	}
	return w.Flush()
}

// shares formats the percentages of each pool at which a wave waits, "" for none.
func shares(list []int32) string {
	var out []string
	for _, s := range list {
		if s < 100 || len(list) > 1 {
			out = append(out, fmt.Sprint(s))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, ", ") + " %"
}

// rolloutDo returns a subcommand of weir rollout that asks the daemon to change a FleetRollout. do
// is the name of the subcommand and of the request, short its help, and done the message after
// success.
func rolloutDo(s surroundings, do, short, done string) *cobra.Command {
	var f serverFlags
	var file, output string
	var in commands.RolloutRequest
	c := &cobra.Command{
		Use: do + " NAME [--source SOURCE] [--reason TEXT] [flags]", Short: short, Args: exactly(1),
		Long: strings.ToUpper(short[:1]) + short[1:] + ".\n" + exitHelp("rollout"), Example: "  weir rollout " + do + " default/nodes",
	}
	f.add(c)
	c.Flags().StringVar(&file, "config", "", "configuration file of the daemon")
	c.Flags().StringVar(&in.Source, "source", "", "source of the FleetRollout, if several sources have one of this name")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, shown to every reader")
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.ValidArgsFunction = completeRollouts(s, &file, &f)
	c.RunE = func(c *cobra.Command, args []string) error {
		d, _, err := s.daemonFor(f, file)
		if err != nil {
			return err
		}
		in.Do, in.Name, in.By = do, args[0], client.LocalUser()
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		if body, err = d.Do(c.Context(), http.MethodPost, commands.RolloutPath, body, 8<<20); err != nil {
			return err
		}
		var out waves.Rollout
		if err := json.Unmarshal(body, &out); err != nil || out.Name == "" {
			return d.NotWeir()
		}
		if output != outputText {
			return s.value(output, out)
		}
		fmt.Fprintf(s.stdout, "%s %s\n", wording.Clean(out.Name), done)
		return nil
	}
	return c
}
