package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pool is what Git says of one pool.
type pool struct {
	max   int
	kind  string // of machines
	owner string // a tag
}

// tree is what one commit says: pools by target and name, as prod/pool-1. A broken one does
// not render.
type tree struct {
	pools  map[string]pool
	broken bool
}

func (t tree) clone() tree { return tree{maps.Clone(t.pools), t.broken} }

// merged is the tree of a branch with what another one has changed since both were base.
// false: both have changed the same.
func (t tree) merged(base, other tree) (tree, bool) {
	out := t.clone()
	for key := range allKeys(base.pools, other.pools) {
		was, hadWas := base.pools[key]
		is, has := other.pools[key]
		if was == is && hadWas == has {
			continue
		}
		if here, hasHere := t.pools[key]; here != was || hasHere != hadWas {
			return tree{}, false
		}
		if has {
			out.pools[key] = is
		} else {
			delete(out.pools, key)
		}
	}
	return out, true
}

func allKeys(a, b map[string]pool) map[string]pool {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// head is a commit that the branch was at since a moment.
type head struct {
	tree
	revision string
	since    time.Time
}

// repo is the repository that daemons follow.
type repo struct {
	t       *testing.T
	root    string
	targets []string
	heads   []head // the last one is the branch's
	// refs are what the server says of its refs, before the last push and now; nil
	// where nobody has asked.
	before, now *httptest.ResponseRecorder
}

func newRepo(t *testing.T) *repo {
	r := &repo{t: t, root: t.TempDir()}
	r.git(r.root, nil, "init", "--quiet", "--bare", "--initial-branch=main", "fleet.git")
	// A server that lags behind gives what its refs were.
	r.git(r.dir(), nil, "config", "uploadpack.allowAnySHA1InWant", "true")
	return r
}

func (r *repo) dir() string { return filepath.Join(r.root, "fleet.git") }

func (r *repo) head() head { return r.heads[len(r.heads)-1] }

const branch = "refs/heads/main"

// push makes a commit the branch's, on top of the branch, or in its place.
func (r *repo) push(t tree, force bool) {
	var parents []string
	if len(r.heads) > 0 && !force {
		parents = []string{r.head().revision}
	}
	r.moved(t, r.commit(branch, t, "change", parents...))
}

// moved notes where the branch is now.
func (r *repo) moved(t tree, revision string) {
	r.heads = append(r.heads, head{t.clone(), revision, time.Now()})
	const most = 200
	if len(r.heads) > 2*most {
		r.heads = slices.Clone(r.heads[most:])
	}
}

// commit makes a commit that a ref is then at.
func (r *repo) commit(ref string, t tree, message string, parents ...string) string {
	if r.now != nil {
		r.before, r.now = r.now, nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit %s\ncommitter Alice <alice@example.com> %d +0000\ndata %d\n%s\n", ref, time.Now().Unix(), len(message), message)
	for i, p := range parents {
		fmt.Fprintf(&b, "%s %s\n", []string{"from", "merge"}[min(i, 1)], p)
	}
	b.WriteString("deleteall\n")
	for _, target := range r.targets {
		r.overlay(&b, t, target)
	}
	b.WriteString("done\n")
	r.git(r.dir(), b.Bytes(), "fast-import", "--quiet", "--done", "--force")
	return strings.TrimSpace(r.git(r.dir(), nil, "rev-parse", ref))
}

func (r *repo) overlay(b *bytes.Buffer, t tree, target string) {
	file := func(name, content string) {
		fmt.Fprintf(b, "M 100644 inline overlays/%s/%s\ndata %d\n%s\n", target, name, len(content), content)
	}
	var list strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t.pools)) {
		if name, ok := strings.CutPrefix(key, target+"/"); ok {
			file(name+".yaml", t.pools[key].manifest(name))
			list.WriteString("- " + name + ".yaml\n")
		}
	}
	text := "resources:\n" + list.String()
	if list.Len() == 0 {
		text = "resources: []\n"
	}
	if t.broken {
		text += "  resources: [nothing\n"
	}
	file("kustomization.yaml", text)
}

// point moves a ref to a commit; "" removes it.
func (r *repo) point(ref, revision string) {
	if r.now != nil {
		r.before, r.now = r.now, nil
	}
	if revision == "" {
		r.git(r.dir(), nil, "update-ref", "-d", ref)
		return
	}
	r.git(r.dir(), nil, "update-ref", ref, revision)
}

// git runs git, with files for what it reads and says: pipes would need goroutines that have
// no turn while this one waits.
func (r *repo) git(dir string, in []byte, args ...string) string {
	r.t.Helper()
	name := filepath.Join(r.root, "in")
	if err := os.WriteFile(name, in, 0o600); err != nil {
		r.t.Fatal(err)
	}
	reads, err := os.Open(name) //nolint:gosec // It is the world's own.
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = reads.Close() }()
	says, err := os.Create(filepath.Join(r.root, "out"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = says.Close() }()
	c := exec.CommandContext(r.t.Context(), "git", args...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr, c.Env = dir, reads, says, says, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	err = c.Run()
	out, err2 := os.ReadFile(says.Name())
	if err = errors.Join(err, err2); err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (p pool) manifest(name string) string {
	return fmt.Sprintf(`apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %[1]s}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: %[1]s}
spec:
  minSize: 1
  maxSize: %[2]d
  additionalTags: {owner: %[4]s}
  awsLaunchTemplate: {instanceType: %[3]s, ami: {eksLookupType: AmazonLinux2023}}
`, name, p.max, p.kind, p.owner)
}
