package fleet

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/tree"
)

// review reviews a tree against what the harness composed last.
func (h *harness) review(base View, p Proposal) *Review {
	h.t.Helper()
	base.ID, p.Source = "id", "s"
	r, err := h.fleet.Base(map[string]View{"s": base}).Review(h.t.Context(), h.accounts, p)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Open(h.t.Context(), h.accounts)
	return r
}

func with(m tree.Map, changes map[string]string) tree.Map {
	out := maps.Clone(m)
	for name, text := range changes {
		if text == "" {
			delete(out, name)
		} else {
			out[name] = text
		}
	}
	return out
}

func TestAProposalTouchesWhatItChanges(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two", "o/three")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	changed := strings.ReplaceAll(m["o/one/pool.yaml"], "maxSize: 3", "maxSize: 4")
	if changed == m["o/one/pool.yaml"] {
		changed = m["o/one/pool.yaml"] + "# a comment\n"
	}
	for name, tc := range map[string]struct {
		tree          tree.Map
		touched, gone []string
		targets       int
	}{
		"nothing":            {m, nil, nil, 3},
		"one":                {with(m, map[string]string{"o/one/pool.yaml": changed}), []string{"one"}, nil, 3},
		"something else":     {with(m, map[string]string{"README.md": "x"}), nil, nil, 3},
		"one taken away":     {with(m, map[string]string{"o/two/pool.yaml": ""}), nil, []string{"two"}, 2},
		"one more":           {with(m, map[string]string{"o/four/pool.yaml": m["o/one/pool.yaml"]}), []string{"four"}, nil, 4},
		"one that is broken": {with(m, map[string]string{"o/one/pool.yaml": "a: [\n"}), []string{"one"}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.review(base, Proposal{Snapshot: snap("head", tc.tree), Owner: "pull 1"})
			if diff := cmp.Diff(tc.touched, r.Touched); diff != "" {
				t.Errorf("touched: %s", diff)
			}
			if diff := cmp.Diff(tc.gone, r.Gone); diff != "" {
				t.Errorf("gone: %s", diff)
			}
			if r.Targets != tc.targets {
				t.Errorf("targets: %d", r.Targets)
			}
			if got := len(r.Batches) > 0; got != (len(tc.touched) > 0) {
				t.Errorf("batches: %d", len(r.Batches))
			}
			if !r.Same(tc.tree) {
				t.Error("the proposal is not the same as itself")
			}
		})
	}
	// A head that is an earlier commit of the branch, or the branch's own.
	for _, revision := range []string{"base", "earlier"} {
		if r := h.review(base, Proposal{Snapshot: snap(revision, m)}); len(r.Touched) > 0 {
			t.Errorf("%s touches %v", revision, r.Touched)
		}
	}
	// The reviews have left nothing behind.
	if c, _ := h.compose(base); len(c.Revisions[0].Touched) != 3 || len(c.Revisions[0].Removed) != 0 {
		t.Errorf("after reviews: %+v", c.Revisions)
	}
}

// A review renders the targets that the proposal changes, and shares the builds of all others with the fleet.
func TestAReviewSharesBuilds(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two")
	base := View{ID: "id", Snapshot: snap("base", m)}
	h.compose(base)
	b := h.fleet.Base(map[string]View{"s": base})
	f := b.fleet.forReview(b.fleet.followed)
	f.o.Accounts = h.accounts
	head := snap("head", with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# x\n"}))
	_, items, err := f.propose(t.Context(), b.views, Proposal{Source: "s", Snapshot: head, Owner: "pull 1"})
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	for _, it := range items {
		if shared := it.render.build == h.fleet.renders[it.name].build; shared != (it.name == "two") {
			t.Errorf("%s shares its build: %t", it.name, shared)
		}
	}
}

func TestSameToldByWhatWasRead(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	head := with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# more\n"})
	r := h.review(base, Proposal{Snapshot: snap("head", head)})
	if !r.Same(with(head, map[string]string{"o/two/pool.yaml": "x", "other": "y"})) {
		t.Error("a change of another target counts")
	}
	if r.Same(with(head, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# yet more\n"})) {
		t.Error("a change of the target does not count")
	}
}

func TestProposalsAreReadWithTheRoleForPlans(t *testing.T) {
	const apply, read = "arn:aws:iam::000000000000:role/weir", "arn:aws:iam::000000000000:role/weir-plan"
	h := newHarness(t, "- {name: t, path: 'o/one', region: eu-west-1, roleARN: '"+apply+"', planRoleARN: '"+read+"'}\n- {name: u, path: 'o/two', region: eu-west-2, roleARN: '"+apply+"'}\n")
	m := pools("o/one", "o/two")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	r := h.review(base, Proposal{Snapshot: snap("head", with(m, map[string]string{
		"o/one/pool.yaml": m["o/one/pool.yaml"] + "# x\n", "o/two/pool.yaml": m["o/two/pool.yaml"] + "# x\n",
	}))})
	roles := map[string]string{}
	for _, b := range r.Batches {
		for _, d := range b.Targets {
			roles[d.Policy.Target] = b.Key.RoleARN
		}
	}
	if diff := cmp.Diff(map[string]string{"t": read, "u": apply}, roles); diff != "" {
		t.Error(diff)
	}
	if r.Roleless != nil {
		t.Errorf("an emulator needs no role: %v", r.Roleless)
	}
}

func TestUntrustedProposalsSeeNoSecret(t *testing.T) {
	h := newHarness(t, "- {name: t, path: 'o/one', region: eu-west-1, varsFrom: [{file: secrets.yaml, secret: true}]}\n- {name: u, path: 'o/two', region: eu-west-1}\n")
	const canary = "s3cr3t-canary-value"
	if err := os.WriteFile(filepath.Join(h.dir, "secrets.yaml"), []byte("TOKEN: "+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := pools("o/one", "o/two")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	leak := with(m, map[string]string{
		"o/one/pool.yaml": fleettest.Pool("pool-one", `dataSecretName: ""`, "dataSecretName: boot") +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"#cloud-config ${TOKEN}\"}\n",
		"o/two/pool.yaml": m["o/two/pool.yaml"] + "# x\n",
	})
	find := func(r *Review) (found, placeholder bool) {
		for _, d := range r.Batches[0].Targets {
			if d.Policy.Target == "t" {
				text := d.Set.Pools[0].LaunchTemplate.UserData.Text
				return strings.Contains(text, canary), strings.Contains(text, withheld)
			}
		}
		return false, false
	}
	trusted := h.review(base, Proposal{Snapshot: snap("head", leak)})
	if found, _ := find(trusted); !found {
		t.Fatal("the secret is nowhere, so nothing can be withheld")
	}
	r := h.review(base, Proposal{Snapshot: snap("head", leak), Untrusted: true})
	if found, placeholder := find(r); found || !placeholder {
		t.Errorf("secret shown: %t, placeholder: %t", found, placeholder)
	}
	if !slices.Equal(r.Touched, []string{"t", "u"}) {
		t.Errorf("touched: %v", r.Touched)
	}
	for _, b := range r.Batches {
		for _, d := range b.Targets {
			if want := d.Policy.Target == "t"; d.Policy.Secretless != want {
				t.Errorf("%s secretless: %t", d.Policy.Target, d.Policy.Secretless)
			}
		}
	}
	// weir does not render an untouched target again without its secrets.
	if r = h.review(base, Proposal{Snapshot: snap("head", with(m, map[string]string{"o/two/pool.yaml": m["o/two/pool.yaml"] + "# x\n"})), Untrusted: true}); !slices.Equal(r.Touched, []string{"u"}) {
		t.Errorf("touched: %v", r.Touched)
	}
}

// What a proposal renders like the followed commit, both without secrets, is as it is
// followed: a placeholder is no change. What it changes is changed, and a pool that it adds
// has the placeholder.
func TestPlaceholdersAreNoChange(t *testing.T) {
	h := newHarness(t, "- {name: t, path: 'o/one', region: eu-west-1, varsFrom: [{file: secrets.yaml, secret: true}]}\n")
	if err := os.WriteFile(filepath.Join(h.dir, "secrets.yaml"), []byte("TOKEN: s3cr3t-canary-value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	boot := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"#cloud-config ${TOKEN}\"}\n"
	pool := func(name string) string { return fleettest.Pool(name, `dataSecretName: ""`, "dataSecretName: boot") }
	m := with(pools("o/one"), map[string]string{"o/one/pool.yaml": pool("pool-one") + boot})
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	followed := h.fleet.Base(map[string]View{"s": base}).fleet.followed["t"].result.Set.Pools[0]
	if !strings.Contains(followed.LaunchTemplate.UserData.Text, "canary") {
		t.Fatalf("the followed pool does not depend on secrets: %+v", followed.LaunchTemplate)
	}
	review := func(text string) *intent.Set {
		t.Helper()
		r := h.review(base, Proposal{Snapshot: snap("head", with(m, map[string]string{"o/one/pool.yaml": text})), Untrusted: true})
		d := r.Batches[0].Targets[0]
		if d.Set == nil || d.Diagnostics.HasErrors() || !d.Policy.Secretless {
			t.Fatalf("set %v, diagnostics %v", d.Set, d.Diagnostics)
		}
		return d.Set
	}
	got := review(m["o/one/pool.yaml"] + "# said otherwise\n").Pools[0]
	if diff := cmp.Diff(followed, got); diff != "" {
		t.Errorf("nothing changes (-followed +proposed):\n%s", diff)
	}
	got = review(strings.Replace(m["o/one/pool.yaml"], "maxSize: ${MAX:=3}", "maxSize: 4", 1)).Pools[0]
	if got.Group.MaxSize != followed.Group.MaxSize+1 || !reflect.DeepEqual(got.LaunchTemplate, followed.LaunchTemplate) {
		t.Errorf("another size: %d, %+v", got.Group.MaxSize, got.LaunchTemplate)
	}
	// Its text is another one for sure; what stands in it for the secret is not the secret.
	got = review(strings.Replace(m["o/one/pool.yaml"], "#cloud-config", "#cloud-config other", 1)).Pools[0]
	if text := got.LaunchTemplate.UserData.Text; strings.Contains(text, "canary") || !strings.Contains(text, "other "+withheld) {
		t.Errorf("other user data: %+v", got.LaunchTemplate)
	}
}

// For who is not trusted no account is opened with a role that is not for plans,
// whichever targets the proposal touches.
func TestUntrustedProposalsOpenNoWritableAccount(t *testing.T) {
	h := newHarness(t, "- {name: t, path: 'o/one', region: eu-west-1, planRoleARN: 'arn:aws:iam::123456789012:role/plan'}\n"+
		"- {name: u, path: 'o/two', region: eu-west-1}\n- {name: v, path: 'o/three', region: eu-west-2}\n")
	h.fleet.o.Config.Endpoint = "" // AWS itself, at an address that nobody answers on
	t.Setenv("AWS_ENDPOINT_URL", h.url)
	t.Setenv("AWS_ACCESS_KEY_ID", "weir")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "weir")
	m := pools("o/one", "o/two", "o/three")
	base := View{ID: "id", Snapshot: snap("base", m)}
	h.compose(base)
	head := with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# x\n", "o/three/pool.yaml": m["o/three/pool.yaml"] + "# x\n"})
	for _, untrusted := range []bool{false, true} {
		plans := &attached{Accounts: h.accounts}
		r, err := h.fleet.Base(map[string]View{"s": base}).Review(t.Context(), plans, Proposal{Source: "s", Snapshot: snap("head", head), Untrusted: untrusted})
		if err != nil {
			t.Fatal(err)
		}
		r.Open(t.Context(), plans)
		roles := plans.roles
		slices.Sort(roles)
		want := []string{"eu-west-1 arn:aws:iam::123456789012:role/plan", "eu-west-2 "}
		if untrusted {
			want = want[:1]
		}
		if diff := cmp.Diff(want, roles); diff != "" {
			t.Errorf("untrusted %t, opened: %s", untrusted, diff)
		}
		if r.Targets != 3 || !slices.Equal(r.Roleless, []string{"v"}) || !slices.Equal(r.Touched, []string{"t", "v"}) {
			t.Errorf("untrusted %t: %d targets, roleless %v, touched %v", untrusted, r.Targets, r.Roleless, r.Touched)
		}
	}
}

// attached remembers which accounts were asked for.
type attached struct {
	Accounts
	roles []string
}

func (a *attached) Attach(_ context.Context, batches []reconciler.Batch, _ ...reconciler.Batch) {
	for _, b := range batches {
		a.roles = append(a.roles, b.Key.Region+" "+b.Key.RoleARN)
	}
}

// The registry of secret values does not grow with each target of each proposal.
func TestProposalsHideOnlyWhatTheyChange(t *testing.T) {
	h := newHarness(t, globbed)
	h.fleet.o.Secrets = &redact.Registry{}
	m := pools("o/one", "o/two")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	for _, r := range h.fleet.renders {
		r.result.Hidden = secret.New("a-hidden-value-of-the-base")
	}
	h.review(base, Proposal{Snapshot: snap("head", with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# x\n"})), Owner: "pull 1"})
	if got := h.fleet.o.Secrets.Redact("a-hidden-value-of-the-base"); got != "a-hidden-value-of-the-base" {
		t.Error("a proposal hides the values of targets that it leaves as they are once more")
	}
}

// weir masks the secrets of a proposal with its own registry for its sender alone.
func TestADraftHidesNothingFromOthers(t *testing.T) {
	h := newHarness(t, globbed)
	h.fleet.o.Secrets = &redact.Registry{}
	m := pools("o/one")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	mine := "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: mine}\nstringData: {name: pool-one-7}\n"
	head := snap("head", with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + mine}))
	own := &redact.Registry{}
	h.review(base, Proposal{Snapshot: head, Owner: "draft of reader", Untrusted: true, Draft: true, Secrets: own})
	if got := h.fleet.o.Secrets.Redact("pool-one-7 of one"); got != "pool-one-7 of one" {
		t.Errorf("everybody reads %q", got)
	}
	if got := own.Redact("pool-one-7 of one"); got == "pool-one-7 of one" {
		t.Error("the values of the draft are not known at all: the test shows nothing")
	}
}

// unreadable is a tree one of whose files cannot be read.
type unreadableTree struct {
	tree.Map
	file string
	err  error
}

func (u unreadableTree) ReadFile(p string) ([]byte, error) {
	if p == u.file {
		return nil, u.err
	}
	return u.Map.ReadFile(p)
}

// A proposal with a file that is too large touches its target, with a fault; one that
// cannot be read is none that touches nothing.
func TestAProposalThatCannotBeRead(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two")
	base := View{ID: "id", Snapshot: snap("base", m)}
	h.compose(base)
	changed := with(m, map[string]string{"o/one/pool.yaml": m["o/one/pool.yaml"] + "# changed\n"})
	review := func(err error) (*Review, error) {
		s := snap("head", changed)
		s.Tree = unreadableTree{changed, "o/one/pool.yaml", err}
		return h.fleet.Base(map[string]View{"s": base}).Review(t.Context(), h.accounts, Proposal{Source: "s", Snapshot: s, Owner: "pull 1"})
	}
	r, err := review(&tree.TooLargeError{Path: "o/one/pool.yaml", Size: 500 << 20, Limit: 1 << 20})
	if err != nil || !slices.Equal(r.Touched, []string{"one"}) {
		t.Errorf("a file that is too large: touched %v, %v", r.Touched, err)
	} else if d := r.Batches[0].Targets[0]; len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "too-large" {
		t.Errorf("a file that is too large: %v", d.Diagnostics)
	}
	if _, err := review(errors.New("the disk is gone")); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
