package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// clusterYAML is a cluster in a region, with a role to assume.
const clusterYAML = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster, name: demo}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: demo}
spec: {region: us-west-2, identityRef: {kind: AWSClusterRoleIdentity, name: other}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterRoleIdentity
metadata: {name: other}
spec:
  roleARN: arn:aws:iam::111111111111:role/other
  allowedNamespaces: {}
  sourceIdentityRef: {kind: AWSClusterControllerIdentity, name: default}
`

func pools(paths ...string) tree.Map {
	m := tree.Map{}
	for _, p := range paths {
		m[p+"/pool.yaml"] = fleettest.Pool("pool-" + filepath.Base(p))
	}
	return m
}

func snap(revision string, m tree.Map) snapshot.Snapshot {
	return snapshot.Snapshot{Source: "s", Revision: revision, Ref: "refs/heads/main", Subject: "subject of " + revision, Tree: m}
}

// harness is a fleet over an embedded AWS.
type harness struct {
	t        testing.TB
	fleet    *Fleet
	url      string
	accounts *accounts.Set
	dir      string
}

func newHarness(t testing.TB, targets string) *harness {
	t.Helper()
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	h := &harness{t: t, url: server.URL, dir: t.TempDir()}
	getenv := func(string) string { return "" }
	c := &Config{Instance: "a", Sources: []string{"s"}, Targets: fleettest.Targets(t, h.dir, targets), KeepVersions: 10, Endpoint: server.URL}
	h.accounts = accounts.New(accounts.Options{Logger: slog.New(slog.DiscardHandler), Getenv: getenv})
	h.fleet = New(Options{Config: c, Accounts: h.accounts, Logger: slog.New(slog.DiscardHandler)})
	return h
}

func (h *harness) compose(v View) (*Composition, map[string]reconciler.Desired) {
	h.t.Helper()
	v.ID = "id"
	c, err := h.fleet.Compose(h.t.Context(), map[string]View{"s": v})
	if err != nil {
		h.t.Fatal(err)
	}
	h.accounts.Attach(h.t.Context(), c.Batches)
	out := map[string]reconciler.Desired{}
	for _, b := range c.Batches {
		for _, d := range b.Targets {
			out[d.Policy.Target] = d
		}
	}
	return c, out
}

const globbed = "- {name: '{1}', path: 'o/*', region: eu-west-1}\n"

func TestOnlyWhatACommitChangesIsRenderedAgain(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two")
	c, first := h.compose(View{Snapshot: snap("r1", m)})
	if diff := cmp.Diff([]Revision{{Source: "s", SHA: "r1", Touched: []string{"one", "two"}}}, c.Revisions); diff != "" {
		t.Errorf("first revision (-want +got):\n%s", diff)
	}
	if len(c.Batches) != 1 || c.Batches[0].Scope == nil || c.Batches[0].Key.Account != "000000000000" {
		t.Fatalf("batches: %+v", c.Batches)
	}

	m = maps.Clone(m)
	m["o/two/pool.yaml"] += "# changed\n"
	c, second := h.compose(View{Snapshot: snap("r2", m)})
	if diff := cmp.Diff([]string{"two"}, c.Revisions[0].Touched); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
	if first["one"].Set != second["one"].Set {
		t.Error("an untouched target was rendered again")
	}
	if first["two"].Set == second["two"].Set {
		t.Error("a touched target was not rendered again")
	}
	if d := second["one"]; d.Commit.Revision != "r2" || d.Touched || !d.Whole {
		t.Errorf("untouched target: %+v", d)
	}

	// A later pass over the same commit says the same.
	if c, _ = h.compose(View{Snapshot: snap("r2", m)}); !cmp.Equal(c.Revisions[0].Touched, []string{"two"}) {
		t.Errorf("a second pass says the commit touches %v", c.Revisions[0].Touched)
	}

	// A commit that leaves a fault where it is has not been applied there either.
	m = maps.Clone(m)
	sound := m["o/two/pool.yaml"]
	m["o/two/pool.yaml"] = "a: [\n"
	h.compose(View{Snapshot: snap("broken", m)})
	m = with(m, map[string]string{"README.md": "words"})
	if c, _ = h.compose(View{Snapshot: snap("words", m)}); !cmp.Equal(c.Revisions[0].Faulty, []string{"two"}) || len(c.Revisions[0].Touched) > 0 {
		t.Errorf("a commit that mends nothing: %+v", c.Revisions[0])
	}
	m["o/two/pool.yaml"] = sound
	h.compose(View{Snapshot: snap("mended", m)})

	// A directory that appears is a target of its own.
	m = maps.Clone(m)
	maps.Copy(m, pools("o/three"))
	c, third := h.compose(View{Snapshot: snap("r3", m)})
	if len(third) != 3 || !cmp.Equal(c.Revisions[0].Touched, []string{"three"}) {
		t.Errorf("targets %d, touched %v", len(third), c.Revisions[0].Touched)
	}
}

func TestASourceThatFailsIsNeverEmpty(t *testing.T) {
	h := newHarness(t, globbed)
	broken := errors.New("unreachable")
	// Before the first snapshot, one target stands for all.
	_, got := h.compose(View{Err: broken})
	if d := got["{1}"]; !errors.Is(d.Err, broken) || d.Set != nil || d.Whole {
		t.Errorf("without a snapshot: %+v", d)
	}
	_, got = h.compose(View{})
	if d := got["{1}"]; d.Err == nil || d.Whole {
		t.Errorf("before the source was read: %+v", d)
	}
	// After it, the last good one stays, and nothing may be deleted.
	h.compose(View{Snapshot: snap("r1", pools("o/one"))})
	_, got = h.compose(View{Snapshot: snap("r1", pools("o/one")), Err: broken})
	if d := got["one"]; !errors.Is(d.Err, broken) || d.Set == nil || len(d.Set.Pools) != 1 || d.Whole {
		t.Errorf("with the last snapshot: %+v", d)
	}
}

func TestDiagnosticsOfComposition(t *testing.T) {
	withCluster := pools("o/one")
	withCluster["o/one/cluster.yaml"] = clusterYAML
	tests := map[string]struct {
		targets string
		tree    tree.Map
		code    string
		whole   bool
		set     bool
	}{
		"nothing matches":      {globbed, pools("elsewhere/one"), "path-missing", false, false},
		"path missing":         {"- {name: one, path: o/gone, region: eu-west-1}\n", pools("o/one"), "path-missing", false, false},
		"names collide":        {"- {name: 'one', path: o/one, region: eu-west-1}\n- {name: '{1}', path: 'o/*', region: eu-west-1}\n", pools("o/one"), "duplicate-target", false, false},
		"role not allowed":     {"- {name: one, path: o/one, region: us-west-2}\n", withCluster, "role-not-allowed", false, false},
		"region of a cluster":  {"- {name: one, path: o/one, region: eu-west-1, allowedRoleARNs: ['arn:aws:iam::111111111111:role/other']}\n", withCluster, "region-differs", true, true},
		"broken YAML":          {"- {name: one, path: o/one, region: eu-west-1}\n", tree.Map{"o/one/pool.yaml": "a: ["}, "yaml-syntax", false, false},
		"one pool of two good": {"- {name: one, path: o, region: eu-west-1}\n", tree.Map{"o/a.yaml": pools("aaa")["aaa/pool.yaml"], "o/b.yaml": strings.Replace(pools("bbb")["bbb/pool.yaml"], "minSize: 1", "minSize: 9", 1)}, "", false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.targets)
			_, got := h.compose(View{Snapshot: snap("r1", tc.tree)})
			d, ok := got["one"]
			if !ok {
				d = got["{1}"]
			}
			found := tc.code == "" && d.Diagnostics.HasErrors()
			for _, g := range d.Diagnostics {
				found = found || g.Code == tc.code
			}
			if !found || d.Whole != tc.whole || (d.Set != nil) != tc.set {
				t.Errorf("want %q, whole %t, set %t; got whole %t, set %t, error %v, %v", tc.code, tc.whole, tc.set, d.Whole, d.Set != nil, d.Err, d.Diagnostics)
			}
		})
	}
}

func TestTheRoleOfAClusterLeadsToItsAccount(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: us-west-2, allowedRoleARNs: ['arn:aws:iam::111111111111:role/other']}\n")
	m := pools("o/one")
	m["o/one/cluster.yaml"] = clusterYAML
	c, got := h.compose(View{Snapshot: snap("r1", m)})
	if d := got["one"]; d.Policy.Account != "111111111111" || c.Batches[0].Key.RoleARN != "arn:aws:iam::111111111111:role/other" {
		t.Errorf("account %q, key %+v, error %v, %v", d.Policy.Account, c.Batches[0].Key, d.Err, d.Diagnostics)
	}
}

func TestAnAccountThatCannotBeOpened(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1, accountID: '999999999999'}\n")
	c, got := h.compose(View{Snapshot: snap("r1", pools("o/one"))})
	if d := got["one"]; d.Err == nil || !strings.Contains(d.Err.Error(), "999999999999") || d.Whole || c.Batches[0].Scope != nil {
		t.Errorf("error %v, whole %t", d.Err, d.Whole)
	}
}

func TestTwoRolesInOneAccountDeleteNothing(t *testing.T) {
	role := "roleARN: 'arn:aws:iam::222222222222:role/%s'"
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1, "+fmt.Sprintf(role, "x")+"}\n- {name: two, path: o/two, region: eu-west-1, "+fmt.Sprintf(role, "y")+"}\n")
	_, got := h.compose(View{Snapshot: snap("r1", pools("o/one", "o/two"))})
	for name, d := range got {
		if d.Err != nil || d.Whole {
			t.Errorf("%s: error %v, whole %t", name, d.Err, d.Whole)
		}
	}
}

func TestVariables(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1, varsFrom: [{file: vars}]}\n")
	view := View{Snapshot: snap("r1", pools("o/one"))}
	_, got := h.compose(view)
	if got["one"].Err == nil {
		t.Error("a missing file is no error")
	}
	for _, size := range []int32{7, 8} {
		if err := os.WriteFile(filepath.Join(h.dir, "vars"), fmt.Appendf(nil, "MAX=%d\n", size), 0o600); err != nil {
			t.Fatal(err)
		}
		_, got = h.compose(view)
		if d := got["one"]; d.Err != nil || d.Set == nil || d.Set.Pools[0].Group.MaxSize != size {
			t.Errorf("size %d: error %v, %v", size, d.Err, d.Diagnostics)
		}
	}
}

// All that a target's wish comes from tells it from another, and nothing else does.
func TestWhatATargetWants(t *testing.T) {
	const one = "- {name: one, path: o/one, region: eu-west-1, varsFrom: [{file: vars}]"
	wants := func(targets, revision, vars string, tr tree.Map) string {
		h := newHarness(t, targets)
		if err := os.WriteFile(filepath.Join(h.dir, "vars"), []byte(vars), 0o600); err != nil {
			t.Fatal(err)
		}
		c, got := h.compose(View{Snapshot: snap(revision, tr)})
		if d := got["one"]; d.Err != nil || d.Set == nil {
			t.Fatalf("%v, %v", d.Err, d.Diagnostics)
		}
		return c.Conditions["one"].Rendered
	}
	plain, boots := pools("o/one"), tree.Map{}
	base := wants(one+"}\n", "r1", "MAX=7\n", plain)
	if other := wants(one+"}\n", "r2", "MAX=7\n", with(plain, map[string]string{"README.md": "new"})); base == "" || other != base {
		t.Errorf("another commit of the same: %q and %q", base, other)
	}
	for name, other := range map[string]string{
		"variables": wants(one+"}\n", "r1", "MAX=8\n", plain),
		"region":    wants(strings.Replace(one, "eu-west-1", "eu-west-2", 1)+"}\n", "r1", "MAX=7\n", plain),
		"network":   wants(one+", network: {subnetIDs: [subnet-0123456789abcdef0]}}\n", "r1", "MAX=7\n", plain),
	} {
		if other == "" || other == base {
			t.Errorf("another %s is not told apart", name)
		}
	}
	for i, text := range []string{"first", "second"} {
		boots["o/one/pool.yaml"] = fleettest.Pool("web", `dataSecretName: ""`, "dataSecretName: boot")
		boots["o/one/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"#!/bin/sh " + text + "\"}\n"
		if now := wants(one+"}\n", "r1", "MAX=7\n", boots); now == base {
			t.Errorf("user data %d is not told apart", i)
		} else {
			base = now
		}
	}
}

func TestPruneTrailer(t *testing.T) {
	h := newHarness(t, globbed)
	parent := snap("r1", pools("o/one", "o/two"))
	after := snap("r2", tree.Map{"o/one/pool.yaml": "# nothing\n", "o/two/pool.yaml": "# nothing\n"})
	after.Parent, after.Message = "r1", "remove\n\nBecause.\n\nSigned-off-by: x\nweir-allow-prune: one\n"
	_, got := h.compose(View{Snapshot: after, At: func(_ context.Context, revision string) (snapshot.Snapshot, error) {
		if revision != "r1" {
			return snapshot.Snapshot{}, errors.New("no such commit")
		}
		return parent, nil
	}})
	if diff := cmp.Diff(map[string]bool{"default/pool-one": true}, got["one"].Policy.Prune.Allowed); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
	if got["two"].Policy.Prune.Allowed != nil {
		t.Errorf("another target is allowed %v", got["two"].Policy.Prune.Allowed)
	}
}

func TestAllowedPrunes(t *testing.T) {
	for message, want := range map[string][]string{
		"subject": nil,
		"Weir-Allow-Prune: subject is no trailer":           nil,
		"s\n\nWeir-Allow-Prune: a":                          {"a"},
		"s\r\n\r\nWeir-Allow-Prune: a\r\n":                  {"a"},
		"s\n\nWeir-Allow-Prune: a\nWeir-Allow-Prune: b\n\n": {"a", "b"},
		"s\n\nWeir-Allow-Prune: a\n\nlast paragraph":        nil,
		"s\n\nwrite\nWeir-Allow-Prune: a\nto lift it":       nil,
		"s\n\nWeir-Allow-Prune: a b":                        {"a b"},
		"s\n\nWeir-Allow-Prune: a\nSome prose":              nil,
	} {
		if diff := cmp.Diff(want, allowedPrunes(message)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
	}
}
