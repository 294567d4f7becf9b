package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

const statusHelp = `Show the state of every pool.

Without arguments it asks a running daemon, at --server. With --config it asks the daemon
of that configuration. If none answers, it reads AWS directly, as it does for a PATH or
with --endpoint-url. It changes nothing. TARGETs limit the table, as do --phase and
--problems. --problems shows pools that have failed, are held, have drifted or have not
converged.

  READY   instances in service, and the desired number
  BOUNDS  the minimum and the maximum
  SEEN    the time of the daemon's last read

On a terminal the table fits its width; -o json has everything. There every target also has
the digest of its plan, for weir approve.

With --watch it draws the table again every --interval until Ctrl-C. If the output is no
terminal, it adds a line for each pool that has changed.
`

// statusFlags selects the pools to show, and the interval of updates.
type statusFlags struct {
	output string
	serverFlags
	phases          []string
	problems, watch bool
	interval        time.Duration
}

func statusCommand(s surroundings) *cobra.Command {
	var flags passFlags
	var f statusFlags
	c := &cobra.Command{
		Use:   "status [--server URL | --config FILE] [TARGET…] | PATH --region REGION [flags]",
		Short: "show the state of every pool",
		Long:  statusHelp + exitHelp("status"),
		Example: `  weir status
  weir status --problems --watch
  weir status --server https://weir.example.com prod -o json
  weir status overlays/prod --region eu-west-1`,
		Args: cobra.ArbitraryArgs,
	}
	flags.addWithoutPrune(c, s)
	f.add(c)
	c.Flags().StringArrayVar(&f.phases, "phase", nil, "only pools in this `PHASE`, such as Failed; may be repeated")
	c.Flags().BoolVar(&f.problems, "problems", false, "only pools with a problem: failed, held, drifted or not converged")
	c.Flags().BoolVar(&f.watch, "watch", false, "redraw the table until Ctrl-C")
	c.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "how often, with --watch")
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &f.serverFlags, poolsNever)
	outputFlag(c, &f.output, outputText, outputJSON, outputYAML)
	complete(c, "phase", func(string) []string { return phaseNames() })
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.check(c); err != nil {
			return err
		}
		if f.watch {
			return watchStatus(c, s, &flags, f, args)
		}
		found, err := readStanding(c, s, &flags, f.serverFlags, args)
		if err != nil {
			return err
		}
		f.narrow(&found)
		code := exitOK
		if slices.ContainsFunc(found.targets, func(t terminal.Target) bool { return t.Failed }) {
			code = exitError
		}
		found.complain(s, s.stderr)
		if f.output != outputText {
			return errors.Join(s.value(f.output, terminal.Standing(found.held, found.Pools, found.LaunchConfigs, found.marks, found.targets)), withCode(code))
		}
		found.print(s.printer(s.stdout))
		return withCode(code)
	}
	return c
}

func phaseNames() (out []string) {
	for _, p := range []plan.Phase{
		plan.PhasePending, plan.PhaseProvisioning, plan.PhaseProvisioned, plan.PhaseRunning, plan.PhaseScaling, plan.PhaseScalingUp,
		plan.PhaseScalingDown, plan.PhaseDeleting, plan.PhaseFailed, plan.PhaseUnknown,
	} {
		out = append(out, string(p))
	}
	return out
}

// check rejects flags that exclude each other.
func (f *statusFlags) check(c *cobra.Command) error {
	for i, p := range f.phases {
		at := slices.IndexFunc(phaseNames(), func(name string) bool { return strings.EqualFold(name, p) })
		if at < 0 {
			return usage("the phases are "+strings.Join(phaseNames(), ", "), "there is no phase %q", p)
		}
		f.phases[i] = phaseNames()[at]
	}
	switch {
	case f.watch && f.output != outputText:
		return usage("use only one of them", "--watch shows text only, not -o %s", f.output)
	case c.Flags().Changed("interval") && !f.watch:
		return usage("add --watch", "--interval needs --watch")
	case f.interval < time.Second:
		return usage("write it like --interval 5s; it is at least 1s", "--interval cannot be %s", f.interval)
	}
	return nil
}

// narrow removes the pools that were not requested.
func (f *statusFlags) narrow(found *standing) {
	found.beside = found.marks.Beside(found.Pools)
	found.Pools = slices.DeleteFunc(found.Pools, func(p plan.PoolStatus) bool {
		return len(f.phases) > 0 && !slices.Contains(f.phases, string(p.Phase)) || f.problems && !found.marks.Problem(p)
	})
	if f.problems {
		found.LaunchConfigs = slices.DeleteFunc(found.LaunchConfigs, func(l plan.LaunchConfigStatus) bool { return l.Ready })
	}
}

// add adds a target with its pools.
func (found *standing) add(t terminal.Target) {
	found.targets = append(found.targets, t)
	if found.marks.Targets == nil {
		found.marks.Targets = map[string]terminal.Target{}
	}
	found.marks.Targets[t.Name] = t
}

// complain prints the reason why nothing is written, and the targets that fail, with the reasons.
func (found standing) complain(s surroundings, w io.Writer) {
	if found.held != "" {
		fmt.Fprintf(w, "nothing is written: %s\n", wording.Clean(found.held))
	}
	for _, t := range found.targets {
		if !t.Failed {
			continue
		}
		fmt.Fprintf(w, "target %s:\n", wording.Clean(t.Name))
		p := s.printer(s.stderr)
		p.W = w
		p.Diagnostics(slices.DeleteFunc(slices.Clone(t.Diagnostics), func(d diag.Diagnostic) bool { return d.Severity != diag.Error }))
	}
}

func (found standing) print(p terminal.Printer) {
	p.Pools(found.Pools, found.marks)
	for _, text := range append(heldNotes(found.targets), found.beside...) {
		p.Note(text)
	}
	p.LaunchConfigs(found.LaunchConfigs)
}

// heldNotes returns a note for each target whose followed commit cannot be rendered.
func heldNotes(targets []terminal.Target) (out []string) {
	for _, t := range targets {
		if h := t.HeldTo; h != nil {
			text := "target " + t.Name
			if !h.Since.IsZero() {
				text += ", since " + h.Since.UTC().Format("2 Jan 2006 15:04 MST")
			}
			out = append(out, text+": "+h.Text+"; released by: "+h.Ends)
		}
	}
	return out
}

// standing is the state of pools. Pools and LaunchConfigs are the daemon's response at /api/v1/pools.
// targets lists the requested targets, or all targets if none was named.
type standing struct {
	Pools         []plan.PoolStatus         `json:"pools"`
	LaunchConfigs []plan.LaunchConfigStatus `json:"launchConfigs"`
	targets       []terminal.Target
	marks         terminal.Marks
	beside        []string // holds of pools that are not among Pools
	held          string   // the reason why nothing is written at all
}

// readStanding gets the state from a daemon or from AWS.
func readStanding(c *cobra.Command, s surroundings, flags *passFlags, server serverFlags, args []string) (standing, error) {
	ctx := c.Context()
	if err := flags.checkPathFlags(c); err != nil {
		return standing{}, err
	}
	reading := flags.pathOnly(c)
	if reading == "" {
		reading = given(c, "endpoint-url")
	}
	switch {
	case server.address != "" && reading != "":
		return standing{}, usage("use only one of them", "%s reads AWS, and --server asks a daemon", reading)
	case server.address != "" && flags.config != "":
		return standing{}, usage("use only one of them", "--server and --config both choose the daemon")
	case server.address != "":
		return s.askServer(ctx, server, nil, args)
	case flags.config != "" && reading != "":
		// The user requests an endpoint that the daemon may not use.
	case flags.config != "":
		cfg, err := s.loadConfig(flags.config)
		if err != nil {
			return standing{}, err
		}
		found, err := s.askServer(ctx, server, cfg, args)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return found, err
		}
		fmt.Fprintf(s.stderr, "no daemon answers at %s; reading AWS\n", cfg.Listen)
	case reading == "" && !isPath(args):
		found, err := s.askServer(ctx, server, nil, args)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return standing{}, hinted(err, "start weir run, or pass the daemon's address with --server, or a PATH and --region to read AWS directly")
		}
		return found, err
	}
	return readAWS(c, s, flags, args)
}

// readAWS plans, and returns the observed state of the pools.
func readAWS(c *cobra.Command, s surroundings, flags *passFlags, args []string) (standing, error) {
	w, err := flags.open(c, s, args, s.quiet())
	if err != nil {
		return standing{}, err
	}
	defer w.Close()
	found := standing{held: w.Held()}
	for _, r := range w.Pass(c.Context(), reconciler.PlanOnly) {
		found.Pools = append(found.Pools, r.Pools...)
		found.LaunchConfigs = append(found.LaunchConfigs, r.LaunchConfigs...)
		if r.Plan != nil {
			found.marks.Add(r.Target, r.Plan.Steps)
		}
		t := terminal.Target{Name: r.Target, Revision: r.Revision, Suspended: r.Suspended, Failed: workspace.Failing(r) || workspace.Obstructed(r), Diagnostics: r.Shown().Diagnostics}
		if r.Plan != nil {
			t.Digest = r.Plan.Digest()
		}
		t.HeldTo = report.KeptOf(r, time.Time{})
		found.add(t)
	}
	return found, nil
}

func isPath(args []string) bool {
	if len(args) != 1 {
		return false
	}
	_, err := os.Stat(args[0])
	return err == nil
}
