package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/source/worktree"
	"github.com/weir-gitops/weir/status/wording"
)

// Draft is planned instead of the followed commit of a source.
type Draft struct {
	// Path is in the work tree to plan, as it is on disk. Ref is a branch, tag or commit of the repository
	// that contains Path or, if Path is empty, of the source's repository.
	Path, Ref string
	// Pull is a pull request to plan instead of Path and Ref.
	Pull Pull
	// Targets lists the targets to plan. If it is empty, all changed targets are planned.
	Targets []string

	// all plans all targets if Targets is empty. files replace files of the work tree.
	all   bool
	files map[string][]byte
}

// proposed is a proposed state of a source.
type proposed struct {
	fleet.Proposal
	// what describes the state for readers.
	what string
	// lacks reports whether the state does not contain a followed commit; nil if that is unknown.
	lacks func(ctx context.Context, followed string) (bool, error)
}

// Drafted is the result of planning a draft.
type Drafted struct {
	Reports []*plan.Report
	// what describes the planned state. against is the followed commit of source, and unread the reason why
	// that commit is unknown.
	what, source, against, unread string
	// behind says that the draft does not contain the followed commit.
	behind bool
	// gone lists the targets that the draft removes, unaffected is the number of targets that it does not
	// change, and withheld lists targets without their secrets.
	gone       []string
	unaffected int
	withheld   []string
	// asFollowed says that parts that depend on their secrets are planned as in the followed commit.
	asFollowed bool
}

// PlanDraft plans a work tree or a ref like the daemon of a configuration would if its source followed it.
// It only reads, and neither locks nor needs the state directory.
func PlanDraft(ctx context.Context, env Env, c *config.Config, f Draft) (Drafted, error) {
	return planDraft(ctx, env, c, f, func(_ *drafting, b reconciler.Batch) []*plan.Report {
		return reconciler.RunBatch(ctx, b, reconciler.PlanOnly)
	})
}

// drafting is a draft with opened accounts.
type drafting struct {
	*Workspace
	review      *fleet.Review
	composition *fleet.Composition
	accounts    *accounts.Set
}

// planDraft plans a draft with passes over its scopes.
func planDraft(ctx context.Context, env Env, c *config.Config, f Draft, pass func(*drafting, reconciler.Batch) []*plan.Report) (out Drafted, err error) {
	names := f.Targets
	if err := apart(env, c, "ask the daemon itself with --server, or give the address of a weir emulator with --endpoint-url"); err != nil {
		return out, err
	}
	tree, from, err := f.place(c)
	if err != nil {
		return out, err
	}
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return out, fmt.Errorf("make mirror directory: %w", err)
	}
	w := &Workspace{release: []func(){func() { _ = os.RemoveAll(dir) }}} // the system cleans up anything that is left
	defer w.Close()
	views, err := w.readSources(ctx, env, c, dir)
	if err != nil {
		return out, err
	}
	var is proposed
	switch {
	case tree != nil:
		is, err = w.fromWorkTree(ctx, tree, f.Ref)
	case f.Pull.given():
		is, err = w.fromPull(ctx, c, from, filepath.Join(dir, "pull"), f.Pull.Number, views[from.Name].Snapshot.Revision, env.Secrets)
	default:
		is, err = w.fromSource(ctx, from, filepath.Join(dir, "ref"), f.Ref, env.Secrets)
	}
	if err != nil {
		return out, err
	}
	aws := env.accounts()
	composer := fleet.New(fleet.Options{Config: c.Fleet(""), Accounts: aws, Endpoint: env.Endpoint, DigestKey: uselessKey(), Secrets: env.Secrets, Logger: env.Logger})
	composition, err := composer.Compose(ctx, views)
	if err != nil {
		return out, err
	}
	is.Source, is.Owner, is.Draft, is.Only, is.All = from.Name, "draft", true, names, f.all
	if len(f.files) > 0 {
		is.Snapshot.Tree = edit.With(is.Snapshot.Tree, f.files)
	}
	review, err := composer.Base(views).Review(ctx, aws, is.Proposal)
	if err != nil {
		return out, err
	}
	if err := hasTargets(review, names, from.Name); err != nil {
		return out, err
	}
	if out, err = is.drafted(ctx, views[from.Name]); err != nil {
		return out, err
	}
	review.Open(ctx, aws)
	out.gone, out.withheld = review.Gone, review.Withheld
	if len(names) == 0 {
		out.unaffected = review.Targets - len(review.Touched)
	}
	d := &drafting{w, review, composition, aws}
	out.Reports = review.Plan(func(b reconciler.Batch) []*plan.Report { return pass(d, b) })
	return out, ctx.Err()
}

// uselessKey returns a digest key for plans that have no digest.
func uselessKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

// place returns the work tree of a draft, nil if it has none, and the source that the draft replaces.
func (f Draft) place(c *config.Config) (tree *worktree.WorkTree, from config.Source, err error) {
	if f.Path != "" {
		if tree, err = openWorkTree(f.Path); err != nil {
			return nil, from, err
		}
	}
	from, err = sourceOf(c, f, identities(tree))
	if wrong := config.AsSourceError(err); wrong != nil {
		return nil, from, advice.Usage(wrong.Hint, "%s", wrong.Message)
	}
	return tree, from, err
}

// hasTargets returns an error for names of targets that a review does not contain.
func hasTargets(review *fleet.Review, names []string, source string) error {
	for _, name := range names {
		if !slices.Contains(review.Names, name) {
			return advice.Usage(targetHint(name, review.Names), "source %[2]s has no target %[1]q", name, source)
		}
	}
	return nil
}

// drafted describes the planned state, and the followed commit that it is compared with.
func (p proposed) drafted(ctx context.Context, followed fleet.View) (out Drafted, err error) {
	out.what, out.source, out.against = p.what, p.Source, followed.Snapshot.Revision
	if followed.Err != nil {
		out.unread = followed.Err.Error()
	}
	if p.lacks != nil && out.against != "" {
		out.behind, err = p.lacks(ctx, out.against)
	}
	return out, err
}

func openWorkTree(path string) (*worktree.WorkTree, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, advice.Hinted(fmt.Errorf("open work tree: %w", err), "--path names a Git work tree, or a directory in one")
	}
	tree, err := worktree.OpenWorkTree(path)
	switch {
	case errors.Is(err, worktree.ErrNoWorkTree):
		return nil, advice.Hinted(err, "--path names a Git work tree, or a directory in one; weir plan PATH --region REGION plans any directory by itself")
	case err != nil:
		return nil, advice.Hinted(err, "weir reads the work tree as Git does; see whether git status works there")
	}
	return tree, nil
}

// identities returns the identity of a work tree by its location, and the identities of the repositories
// that it is a clone of.
func identities(tree *worktree.WorkTree) (out []string) {
	if tree == nil {
		return nil
	}
	for _, url := range append([]string{tree.Root}, tree.Remotes...) {
		out = append(out, transport.ID(url))
	}
	return out
}

// fromWorkTree returns a work tree as it is on disk, or a ref of its repository.
func (w *Workspace) fromWorkTree(ctx context.Context, tree *worktree.WorkTree, ref string) (p proposed, err error) {
	git, err := tree.At(cmp.Or(ref, "HEAD"))
	if err != nil && ref == "" { // the repository has no commit yet
		p.what = tree.Root + " as it is on disk"
		p.Snapshot, p.Head = snapshot.Snapshot{Revision: onDisk, Tree: tree.Tree}, &snapshot.Snapshot{}
		return p, nil
	}
	if err != nil {
		return p, advice.Hinted(err, "--ref names a branch, a tag, HEAD, or a commit in full, as git rev-parse prints it")
	}
	w.release = append(w.release, git.Close)
	head, err := git.Latest(ctx)
	if err != nil {
		return p, err
	}
	p.Snapshot, p.At, p.what = head, git.At, fmt.Sprintf("%s (%s) of %s", ref, head.Revision[:7], tree.Root)
	if ref == "" {
		p.Snapshot, p.Head, p.what = snapshot.Snapshot{Revision: onDisk, Tree: tree.Tree}, &head, tree.Root+" as it is on disk"
	}
	p.lacks = func(ctx context.Context, followed string) (bool, error) {
		has, err := git.Descends(ctx, head.Revision, followed)
		return !has, err
	}
	return p, nil
}

// onDisk is the revision of uncommitted files.
const onDisk = "on disk"

// fromSource returns a ref of a source's own repository.
func (w *Workspace) fromSource(ctx context.Context, s config.Source, dir, ref string, secrets *redact.Registry) (p proposed, err error) {
	from, _, err := follow.Config(s, dir, secrets.Set)
	if err != nil {
		return p, err
	}
	from.Verify = signature.Policy{} // only the followed commit must be signed; this one is for review
	tries := []source.Ref{{Branch: ref}, {Tag: ref}}
	switch {
	case strings.HasPrefix(ref, "refs/"):
		tries = []source.Ref{{Name: ref}}
	case source.Ref{Commit: ref}.Validate() == nil:
		tries = []source.Ref{{Commit: ref}}
	}
	for _, from.Ref = range tries {
		if err = from.Ref.Validate(); err != nil {
			break
		}
		var git *source.Git
		if git, err = source.New(from, source.Options{}); err != nil {
			return p, err
		}
		w.release = append(w.release, git.Close)
		if p.Snapshot, err = git.Latest(ctx); err == nil {
			p.At, p.what = git.At, fmt.Sprintf("%s (%s) of source %s", ref, p.Snapshot.Revision[:7], s.Name)
			p.lacks = w.mergeMisses(s.Name, p.Snapshot)
			return p, nil
		}
		var missing *fault.UnavailableError
		if !errors.As(err, &missing) || missing.Reason != fault.MissingRef {
			break
		}
	}
	return p, advice.Hinted(fmt.Errorf("plan %s: %w", wording.Clean(ref), err), "--ref names a branch, a tag, a ref in full, or a commit in full; with --path DIR it is one of the repository around DIR")
}

// mergeMisses returns a function that reads from the source's history whether a ref does not contain the
// followed commit. If that cannot be read, the function reports nothing.
func (w *Workspace) mergeMisses(name string, head snapshot.Snapshot) func(context.Context, string) (bool, error) {
	if !strings.HasPrefix(head.Ref, "refs/") {
		return nil
	}
	return func(ctx context.Context, followed string) (bool, error) {
		m, err := w.sources[name].Pull(ctx, source.PullRef{Head: head.Ref, HeadSHA: head.Revision, Base: followed})
		return err == nil && m.Behind > 0, ctx.Err()
	}
}

// Notes describes the planned state, and the parts that the plans leave out.
func (r Drafted) Notes() (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	compared := "commit " + r.against[:min(7, len(r.against))] + ", which it follows"
	if r.against == "" {
		compared = "nothing, because the commit that it follows cannot be read"
	}
	say("%s, in place of source %s, compared with %s", r.what, r.source, compared)
	if r.unread != "" {
		say("note: %s", r.unread)
	}
	if r.behind {
		say("note: it is behind the followed commit, so the plan undoes newer changes: merge or rebase first")
	}
	if len(r.withheld) > 0 && r.asFollowed {
		say("note: the daemon plans this without secrets. Parts that depend on secrets are shown as in the commit that it follows, and changes of secrets are not shown: %s", strings.Join(r.withheld, ", "))
	} else if len(r.withheld) > 0 {
		say("note: secrets are not decrypted for this plan, so what depends on them may show as changed: %s", strings.Join(r.withheld, ", "))
	}
	for _, t := range r.gone {
		say("note: target %s no longer exists; weir deletes none of its resources because of that", t)
	}
	if r.unaffected > 0 {
		say("%s not planned: no changes; name a target to plan it anyway", wording.Count(r.unaffected, "target"))
	}
	return out
}
