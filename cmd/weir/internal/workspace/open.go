package workspace

import (
	"context"
	"fmt"
	"os"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/records"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/worktree"
)

// Path is a directory to plan without a configuration.
type Path struct {
	Path string
	// Region defaults to the environment's region, and Target to the name of the directory.
	Region, Target, Instance string
	Kubeconfig               string
	KMSKeys                  []string
	// Prune deletes resources that the directory no longer contains. Writes says that the command changes
	// AWS. Encrypted values are then never replaced by placeholders.
	Prune, Writes bool
	// Files replace files on disk, by their paths relative to the work tree's root.
	Files map[string][]byte
	// Inputs reads the inputs of the render, after all other checks.
	Inputs func() (Inputs, error)
}

// region returns the region of the path, by default the environment's region.
func (p Path) region(env Env) string {
	region := p.Region
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region = env.Getenv(name)
		}
	}
	return region
}

// check rejects properties that AWS or weir would not accept.
func (p Path) check() error {
	switch {
	case p.Region == "":
		return advice.Usage("add --region eu-west-1, or set AWS_REGION", "no region is given for PATH %s", p.Path)
	case !config.ValidRegion(p.Region):
		return advice.Usage("regions are named like eu-west-1", "%q does not look like a region", p.Region)
	case !config.ValidInstance(p.Instance):
		return advice.Usage("use lower-case letters, digits and dashes", "%q cannot be the name of an instance", p.Instance)
	}
	if _, err := os.Stat(p.Path); err != nil {
		return advice.Hinted(fmt.Errorf("open path %s: %w", p.Path, err), "give a directory or a file; names of targets need --config FILE")
	}
	return nil
}

// targets returns the directories of targets, and the names of the targets.
func (p Path) targets() (dirs, names []string, err error) {
	dirs = Overlays(p.Path)
	switch {
	case dirs == nil:
		dirs = []string{p.Path}
	case p.Target != "":
		return nil, nil, advice.Usage("leave --target out: each is named after its directory; or give one of them", "each overlay of %s is a target of its own", p.Path)
	case p.Kubeconfig != "":
		return nil, nil, advice.Usage("give one of them", "each overlay of %s is a target, and --kubeconfig leads to one cluster", p.Path)
	}
	for _, dir := range dirs {
		target, err := fleet.TargetOf(dir, p.Target)
		if err != nil {
			return nil, nil, err
		}
		if !config.ValidName(target) {
			return nil, nil, advice.Usage("give it a name of at most 63 letters, digits, dots, dashes and underscores with --target", "%q cannot be the name of a target", target)
		}
		names = append(names, target)
	}
	return dirs, names, nil
}

// inputs reads the inputs of the render.
func (p Path) inputs() (Inputs, error) {
	in, err := p.Inputs()
	if err != nil {
		return in, err
	}
	for _, arn := range p.KMSKeys {
		if !config.ValidKMSKey(arn) {
			return in, advice.Usage("write it like arn:aws:kms:eu-west-1:123456789012:key/ID", "%q is not the ARN of a KMS key", arn)
		}
	}
	return in, nil
}

// OpenPath opens a directory as a target, or each of its overlays as a target.
func OpenPath(ctx context.Context, env Env, p Path) (*Workspace, error) {
	begin()
	p.Region = p.region(env)
	if err := p.check(); err != nil {
		return nil, err
	}
	dirs, names, err := p.targets()
	if err != nil {
		return nil, err
	}
	in, err := p.inputs()
	if err != nil {
		return nil, err
	}
	aws, key := env.accounts(), reconciler.ScopeKey{Region: p.Region, Endpoint: env.Endpoint}
	in.KMSKeys, in.KMS = p.KMSKeys, aws.KMS(key)
	if !p.Writes {
		aws.Ahead(ctx, key, p.Instance)
	}
	// Only commands that change nothing may use placeholders.
	o := in.Options(!p.Writes)
	w := &Workspace{Quick: env.usesEmulator()}
	for i, path := range dirs {
		if err := w.addPath(ctx, env, aws, p, path, names[i], o); err != nil {
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

// addPath adds a directory as a target.
func (w *Workspace) addPath(ctx context.Context, env Env, aws *accounts.Set, p Path, path, name string, o render.Options) error {
	tree, root, dir, err := worktree.OpenPath(path)
	if err != nil {
		return err
	}
	w.places, w.root, w.tree = append(w.places, edit.Place{Name: name, Dir: dir, Options: o}), root, tree
	if len(p.Files) > 0 {
		tree = edit.With(tree, p.Files)
	}
	head, closeHead := headOf(ctx, root)
	w.release = append(w.release, closeHead)
	batch, err := fleet.Path(ctx, aws, fleet.PathOptions{
		Tree: tree, Root: root, Dir: dir, Head: head, Region: p.Region, Target: name, Instance: p.Instance, Vars: o.Vars, SecretVars: o.SecretVars, Decrypter: o.Decrypter, Hide: env.Secrets,
		Kubeconfig: p.Kubeconfig, Prune: p.Prune, Endpoint: env.Endpoint,
	})
	if err != nil {
		return err
	}
	env.Note(fmt.Sprintf("instance %s, target %s", p.Instance, name))
	if len(w.batches) == 0 {
		w.batches = []reconciler.Batch{batch}
	} else {
		w.batches[0].Targets = append(w.batches[0].Targets, batch.Targets...)
	}
	if cluster, ok := batch.Targets[0].Workload.(*workload.Cluster); ok {
		w.release = append(w.release, cluster.Close)
	}
	return nil
}

// headOf returns the checked-out commit of a work tree, which stays readable until done is called. It is
// nil outside of a work tree, and if the repository cannot be read. A version of a launch template then has
// less information about its origin, but can still be created.
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

// OpenConfig opens targets of a configuration, all if none is named, at the followed commits. If writes is
// true, it fails if the requests of users cannot be read.
func OpenConfig(ctx context.Context, env Env, c *config.Config, names []string, writes bool) (w *Workspace, err error) {
	if err := apart(env, c, "give the address of a weir emulator with --endpoint-url"); err != nil {
		return nil, err
	}
	if writes && c.Several() {
		return nil, advice.Usage("merge the change, or ask the daemons with weir reconcile",
			"the configuration has coordination: daemons own the accounts and regions, and a command would write without their leases")
	}
	key, why, err := records.DigestKey(ctx, c)
	if err != nil {
		return nil, advice.Hinted(err, "set stateDir to a directory that you may write to")
	}
	if why != nil {
		env.Note("the digests of plans that change user data differ from the daemons' digests: " + why.Error())
	}
	aws := env.accounts()
	aws.SetShare(c.AWS.Share())
	w, composition, err := compose(ctx, env, c, fleet.Options{Accounts: aws, Endpoint: env.Endpoint, DigestKey: key})
	if err != nil {
		return nil, err
	}
	opened := w
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	aws.Attach(ctx, composition.Batches)
	if w.gating, err = newGating(ctx, env, c, composition, aws.Clock(), writes); err != nil {
		return nil, err
	}
	return w, w.choose(names, composition.Targets)
}

// Compose opens targets of a configuration like OpenConfig, but does not contact AWS. It also returns the
// targets by name.
func Compose(ctx context.Context, env Env, c *config.Config, names []string) (*Workspace, map[string]fleet.Target, error) {
	w, composition, err := compose(ctx, env, c, fleet.Options{Accounts: env.accounts(), Keyless: true})
	if err != nil {
		return nil, nil, err
	}
	known := map[string]fleet.Target{}
	for _, t := range composition.Targets {
		known[t.Name] = t
	}
	if err := w.choose(names, composition.Targets); err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, known, nil
}

// apart returns an error for an embedded AWS, which is only reachable inside the daemon.
func apart(env Env, c *config.Config, hint string) error {
	if c.AWS.Endpoint == config.EmbeddedEndpoint && env.Endpoint == "" {
		return advice.Usage(hint, "aws.endpoint is \"embedded\": this emulated AWS exists only inside a running \"weir run\"")
	}
	return nil
}

// compose reads the sources of a configuration and composes the desired state of its targets.
func compose(ctx context.Context, env Env, c *config.Config, o fleet.Options) (w *Workspace, composition *fleet.Composition, err error) {
	begin()
	dir, done, err := mirrorDir(c.StateDir)
	if err != nil {
		return nil, nil, err
	}
	w = &Workspace{Quick: env.usesEmulator() || c.AWS.Endpoint != "", release: []func(){done}}
	views, err := w.readSources(ctx, env, c, dir)
	if err == nil {
		o.Config, o.Secrets, o.Logger = c.Fleet(""), env.Secrets, env.Logger
		composition, err = fleet.New(o).Compose(ctx, views)
	}
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	w.batches = composition.Batches
	return w, composition, nil
}
