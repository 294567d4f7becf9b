package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/worktree"
)

// passFlags say what plan, apply and status work on: the targets of a
// configuration, or one directory.
type passFlags struct {
	config   string
	region   string
	target   string
	instance string
	vars     varFlags
	// kubeconfig leads to the cluster that the machines of PATH join.
	kubeconfig string
	kmsKeys    []string
	prune      bool
	endpoint   string
	// writes says that the command changes AWS.
	writes bool
}

func (p *passFlags) add(c *cobra.Command, s surroundings) {
	p.addReading(c, s)
	c.Flags().BoolVar(&p.prune, "prune", false, "delete what PATH no longer wants, within the limit of 20 % of the pools")
}

// addReading adds the flags of a command that changes nothing.
func (p *passFlags) addReading(c *cobra.Command, s surroundings) {
	f := c.Flags()
	f.StringVar(&p.config, "config", "", "configuration file; the arguments are then names of its targets (default: all)")
	f.StringVar(&p.region, "region", "", "AWS region to apply PATH to (default: AWS_REGION)")
	f.StringVar(&p.target, "target", "", "name of the target for PATH (default: the directory's name)")
	f.StringVar(&p.instance, "instance", fleet.PathInstance, "owner of what is made from PATH")
	p.vars.add(c)
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that the machines of PATH join, for its nodes and to keep join tokens there")
	f.StringArrayVar(&p.kmsKeys, "kms-key-arn", nil, "key of AWS KMS that may be asked to decrypt SOPS files of PATH; may be repeated")
	f.StringVar(&p.endpoint, "endpoint-url", "", "address that takes the place of AWS, such as that of weir emulator")
	c.ValidArgsFunction = completeTargets(s, &p.config)
}

// pathOnly names a flag that was given and belongs to a PATH, empty if none.
func (p *passFlags) pathOnly(c *cobra.Command) string {
	return given(c, "region", "target", "instance", "var", "vars-file", "secret-vars-file", "age-key-file", "kms-key-arn", "kubeconfig", "prune")
}

// fits refuses flags of a PATH beside a configuration.
func (p *passFlags) fits(c *cobra.Command) error {
	if flag := p.pathOnly(c); p.config != "" && flag != "" {
		return usage("the configuration says it; leave the flag out", "%s goes with a PATH, not with --config", flag)
	}
	return nil
}

// given names the first of the flags that is on the command line, empty if none.
func given(c *cobra.Command, names ...string) string {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// work is what one command works on. Its passes look at the same commits.
type work struct {
	batches []reconciler.Batch
	// chosen holds the targets to show and write; nil for all.
	chosen map[string]bool
	// quick says that no pass goes to AWS itself.
	quick bool
	// gating holds steps as the daemon would; nil in path mode.
	gating *gating
	// agreed is what the user said yes to, by target; nil where there was no question.
	// deletions says how to agree to deletions where no user can be asked.
	agreed    map[string]*basis.Agreement
	deletions string
	// decided lets what was adopted roll for the first time.
	decided bool
	// sources are what the commits are read from, and release gives them up.
	sources map[string]*source.Git
	release []func()
}

// close ends the work. Until then the passes may ask the commits where a field
// was set.
func (w *work) close() {
	for i := len(w.release) - 1; i >= 0; i-- {
		w.release[i]()
	}
	w.release = nil
}

// open reads the configuration or the directory and opens the accounts.
func (p *passFlags) open(c *cobra.Command, s surroundings, args []string, log *slog.Logger) (*work, error) {
	if p.endpoint != "" {
		if err := config.CheckEndpoint(p.endpoint); err != nil {
			return nil, hinted(fmt.Errorf("--endpoint-url: %w", err), "write it like http://127.0.0.1:8345")
		}
	}
	aws := accounts.New(accounts.Options{Logger: log, Getenv: s.getenv})
	if err := p.fits(c); err != nil {
		return nil, err
	}
	switch {
	case p.config != "":
		return p.openConfig(c.Context(), s, args, log, aws)
	case len(args) != 1:
		return nil, usage("weir "+c.Name()+" --config FILE [TARGET…], or weir "+c.Name()+" PATH --region REGION", "give a configuration, or one PATH")
	}
	return p.openPath(c.Context(), s, args[0], aws)
}

func (p *passFlags) openPath(ctx context.Context, s surroundings, path string, aws *accounts.Set) (*work, error) {
	region := p.region
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region = s.getenv(name)
		}
	}
	switch {
	case region == "":
		return nil, usage("add --region eu-west-1, or set AWS_REGION", "no region is given for PATH %s", path)
	case !config.ValidRegion(region):
		return nil, usage("regions are named like eu-west-1", "%q does not look like a region", region)
	case !config.ValidInstance(p.instance):
		return nil, usage("use lower-case letters, digits and dashes", "%q cannot be the name of an instance", p.instance)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, hinted(fmt.Errorf("open path %s: %w", path, err), "give a directory or a file; names of targets need --config FILE")
	}
	target, err := fleet.TargetOf(path, p.target)
	if err != nil {
		return nil, err
	}
	if !config.ValidName(target) {
		return nil, usage("give it a name of at most 63 letters, digits, dots, dashes and underscores with --target", "%q cannot be the name of a target", target)
	}
	in, err := p.vars.read(s)
	if err != nil {
		return nil, err
	}
	for _, arn := range p.kmsKeys {
		if !config.ValidKMSKey(arn) {
			return nil, usage("write it like arn:aws:kms:eu-west-1:123456789012:key/ID", "%q is not the ARN of a KMS key", arn)
		}
	}
	in.kmsKeys, in.kms = p.kmsKeys, aws.KMS(reconciler.ScopeKey{Region: region, Endpoint: p.endpoint})
	// Only what changes nothing may look at placeholders.
	o := in.options(!p.writes)
	tree, root, dir, err := worktree.OpenPath(path)
	if err != nil {
		return nil, err
	}
	head, closeHead := headOf(ctx, root)
	defer closeHead()
	batch, err := fleet.Path(ctx, aws, fleet.PathOptions{
		Tree: tree, Root: root, Dir: dir, Head: head, Region: region, Target: target, Instance: p.instance, Vars: o.Vars, SecretVars: o.SecretVars, Decrypter: o.Decrypter, Hide: s.secrets,
		Kubeconfig: p.kubeconfig, Prune: p.prune, Endpoint: p.endpoint,
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.stderr, "instance %s, target %s\n", p.instance, target)
	w := &work{batches: []reconciler.Batch{batch}, quick: p.endpoint != "" || s.getenv("AWS_ENDPOINT_URL") != ""}
	if cluster, ok := batch.Targets[0].Workload.(*workload.Cluster); ok {
		w.release = append(w.release, cluster.Close)
	}
	return w, nil
}

// headOf is the commit that a work tree stands on, to be read until it is closed. It is
// nil outside of a work tree, and where the repository cannot be read: a version of a
// launch template then tells less of where it comes from, which does not prevent it.
func headOf(ctx context.Context, root string) (head *snapshot.Snapshot, done func()) {
	w, err := worktree.OpenWorkTree(root)
	if err != nil {
		return nil, func() {}
	}
	git, err := w.At("HEAD")
	if err != nil {
		return nil, func() {}
	}
	if s, err := git.Latest(ctx); err == nil {
		head = &s
	}
	return head, git.Close
}

func (p *passFlags) openConfig(ctx context.Context, s surroundings, args []string, log *slog.Logger, aws *accounts.Set) (w *work, err error) {
	c, err := s.loadConfig(p.config)
	if err != nil {
		return nil, err
	}
	if c.AWS.Endpoint == config.EmbeddedEndpoint && p.endpoint == "" {
		return nil, usage("give the address of a weir emulator with --endpoint-url", "aws.endpoint is \"embedded\": that AWS lives inside of weir run")
	}
	key, err := app.DigestKey(c.StateDir)
	if err != nil {
		return nil, hinted(err, "set stateDir to a directory that you may write to")
	}
	dir, done, err := mirrorDir(c.StateDir)
	if err != nil {
		return nil, err
	}
	w = &work{quick: p.endpoint != "" || c.AWS.Endpoint != "" || s.getenv("AWS_ENDPOINT_URL") != "", release: []func(){done}}
	opened := w
	defer func() {
		if err != nil {
			opened.close()
		}
	}()
	views, err := w.readSources(ctx, c, dir, s.secrets.Set, log)
	if err != nil {
		return nil, err
	}
	composition, err := fleet.New(fleet.Options{Config: c.Fleet(""), Accounts: aws, Endpoint: p.endpoint, DigestKey: key, Secrets: s.secrets, Logger: log}).Compose(ctx, views)
	if err != nil {
		return nil, err
	}
	aws.Attach(ctx, composition.Batches)
	w.batches = composition.Batches
	if w.gating, err = newGating(ctx, s, c, composition, aws.Clock(), p.writes); err != nil {
		return nil, err
	}
	return w, w.choose(args, composition.Targets)
}

// mirrorDir is where one command keeps its mirrors: not where a daemon on the
// same state directory has its own, and for a second command at the same time a
// directory that goes when the command ends.
func mirrorDir(stateDir string) (dir string, done func(), err error) {
	if own, err := app.OpenState(filepath.Join(stateDir, "commands")); err == nil {
		return own.Dir, func() { _ = own.Close() }, nil // the lock goes with the process anyway
	}
	dir, err = os.MkdirTemp("", "weir-")
	if err != nil {
		return "", nil, fmt.Errorf("make mirror directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the system cleans up the rest
}

// readSources fetches every source once. They stay open until the work is closed.
func (w *work) readSources(ctx context.Context, c *config.Config, dir string, hide app.Hide, log *slog.Logger) (map[string]fleet.View, error) {
	views := map[string]fleet.View{}
	w.sources = map[string]*source.Git{}
	for _, s := range c.Sources {
		from, _, err := app.SourceConfig(s, dir, hide)
		if err != nil {
			return nil, err
		}
		git, err := source.New(from, source.Options{Logger: log})
		if err != nil {
			return nil, err
		}
		w.sources[s.Name], w.release = git, append(w.release, git.Close)
		v := fleet.View{ID: git.ID(), At: git.At}
		if v.Snapshot, v.Err = git.Latest(ctx); v.Err != nil {
			v.Snapshot, _ = git.Last()
		}
		views[s.Name] = v
	}
	return views, ctx.Err()
}

// choose limits the work to the named targets. The others stay in the batches,
// suspended: what they want must not be taken for orphaned.
func (w *work) choose(names []string, targets []fleet.Target) error {
	if len(names) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, t := range targets {
		known[t.Name] = true
	}
	w.chosen = map[string]bool{}
	for _, name := range names {
		if !known[name] {
			all := slices.Sorted(maps.Keys(known))
			return usage(didYouMean(name, all, "the targets are "+strings.Join(all, ", ")), "there is no target %q", name)
		}
		w.chosen[name] = true
	}
	for i := range w.batches {
		for j := range w.batches[i].Targets {
			if d := &w.batches[i].Targets[j]; !w.chosen[d.Policy.Target] {
				d.Policy.Suspended = true
			}
		}
	}
	w.batches = slices.DeleteFunc(w.batches, func(b reconciler.Batch) bool {
		return !slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return w.chosen[d.Policy.Target] })
	})
	return nil
}

// pass makes one pass over all accounts and returns the reports by target name.
func (w *work) pass(ctx context.Context, mode reconciler.Mode) []*plan.Report {
	w.gating.before(ctx, w.batches)
	w.each(func(d *reconciler.Desired) {
		g := &d.Policy.Gates
		g.Agreed, g.Deletions, g.Decided = w.agreed[d.Policy.Target], w.deletions, w.decided
	})
	var mu sync.Mutex
	var wg sync.WaitGroup
	var out []*plan.Report
	for _, b := range w.batches {
		wg.Go(func() {
			reports := reconciler.RunBatch(ctx, b, mode)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range reports {
				chosen := w.chosen == nil || w.chosen[r.Target]
				w.gating.after(r, chosen)
				if chosen {
					out = append(out, r)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b *plan.Report) int { return strings.Compare(a.Target, b.Target) })
	return out
}

// refusals are the diagnostics that explain a held step: they are no errors of
// the command, which has an exit code of its own for them.
var refusals = []string{"conflict", "contested-name", "prune-refused"}

// failing reports whether something is wrong with a target beyond refusals.
func failing(r *plan.Report) bool {
	if r.Err != nil || len(r.Failures()) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && !slices.Contains(refusals, d.Code)
	})
}

// refused reports whether a conflict, a limit or a hold kept a step from running. A
// hold that the command waits for is not one of them.
func refused(r *plan.Report, waited ...step.Hold) bool {
	held := r.Plan != nil && slices.ContainsFunc(r.Plan.Steps, func(st step.Step) bool { return st.Held != "" && !slices.Contains(waited, st.Held) })
	return held || obstructed(r)
}

// obstructed reports whether a conflict or a limit is in a step's way.
func obstructed(r *plan.Report) bool {
	return slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && slices.Contains(refusals, d.Code)
	})
}
