package simulate

import (
	"bytes"
	"fmt"
	"maps"
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

// tree is what one commit says. A broken one does not render.
type tree struct {
	pools  map[string]pool
	broken bool
}

func (t tree) clone() tree { return tree{maps.Clone(t.pools), t.broken} }

// head is a commit that the branch was at since a moment.
type head struct {
	tree
	revision string
	since    time.Time
}

// repo is the repository that daemons follow.
type repo struct {
	t     *testing.T
	root  string
	heads []head // the last one is the branch's
}

func newRepo(t *testing.T) *repo {
	r := &repo{t: t, root: t.TempDir()}
	r.git(r.root, nil, "init", "--quiet", "--bare", "--initial-branch=main", "fleet.git")
	return r
}

func (r *repo) head() head { return r.heads[len(r.heads)-1] }

// push makes a commit the branch's, on top of the branch, or in its place.
func (r *repo) push(t tree, force bool) {
	now := time.Now()
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit refs/heads/main\ncommitter Alice <alice@example.com> %d +0000\ndata 6\nchange\n", now.Unix())
	if len(r.heads) > 0 && !force {
		fmt.Fprintf(&b, "from %s\n", r.head().revision)
	}
	b.WriteString("deleteall\n")
	file := func(name, content string) {
		fmt.Fprintf(&b, "M 100644 inline overlays/prod/%s\ndata %d\n%s\n", name, len(content), content)
	}
	list := "resources:\n"
	for _, name := range slices.Sorted(maps.Keys(t.pools)) {
		file(name+".yaml", t.pools[name].manifest(name))
		list += "- " + name + ".yaml\n"
	}
	if len(t.pools) == 0 {
		list = "resources: []\n"
	}
	if t.broken {
		list += "  resources: [nothing\n"
	}
	file("kustomization.yaml", list)
	b.WriteString("done\n")
	dir := filepath.Join(r.root, "fleet.git")
	args := []string{"fast-import", "--quiet", "--done"}
	if force {
		args = append(args, "--force")
	}
	r.git(dir, b.Bytes(), args...)
	r.heads = append(r.heads, head{t.clone(), strings.TrimSpace(r.git(dir, nil, "rev-parse", "refs/heads/main")), now})
	const most = 200
	if len(r.heads) > 2*most {
		r.heads = slices.Clone(r.heads[most:])
	}
}

// since are the heads that the branch had at a moment or later.
func (r *repo) since(at time.Time) []head {
	for i := len(r.heads) - 1; i >= 0; i-- {
		if !r.heads[i].since.After(at) {
			return r.heads[i:]
		}
	}
	return r.heads
}

func (r *repo) git(dir string, in []byte, args ...string) string {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), "git", args...)
	c.Dir, c.Stdin, c.Env = dir, bytes.NewReader(in), append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := c.CombinedOutput()
	if err != nil {
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
