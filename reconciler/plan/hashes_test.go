package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

var updateHashes = flag.Bool("update", false, "rewrite the goldens")

// TestHashesStayWhatTheyAre: what AWS holds is recognised by hashes that an earlier
// weir wrote, so a weir that computes another one rolls every machine of a fleet. Each
// pool of the manifests of package render's tests has its own here: of its template's
// body and source, its user data, and the digest of the plan that makes it. One that has
// to change says in the commit which, and why.
func TestHashesStayWhatTheyAre(t *testing.T) {
	var got strings.Builder
	n := 0
	for _, in := range hashed(t) {
		r, err := render.Render(context.Background(), in.tree, in.path, render.Options{Vars: in.vars})
		if err != nil {
			t.Fatal(in.name, err)
		}
		for i := range r.Set.Pools {
			p := r.Set.Pools[i]
			if len(p.Blocked) > 0 {
				continue
			}
			n++
			fmt.Fprintf(&got, "%s %s\n", in.name, p.Key)
			writeHashes(t, &got, &r.Set, p)
		}
	}
	const golden = "testdata/hashes.txt"
	if *updateHashes {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" || n < 20 {
		t.Errorf("of %d pools, (-want +got):\n%s", n, d)
	}
}

func writeHashes(t *testing.T, to *strings.Builder, set *intent.Set, p intent.Pool) {
	t.Helper()
	own := &intent.Set{Pools: []intent.Pool{p}, Clusters: set.Clusters}
	answers := observed.Answers{}
	for l := range p.Lookups() {
		answers[l] = someAnswer(l)
	}
	in := model.Input{
		Policy: testPolicy(), Commit: content.Commit{Revision: "abcdef0123456789", Subject: "scale"}, Set: own, Answers: answers,
		Fleet: model.NewFleet(map[string][]model.Claim{"blue": model.Claims(own)}, true),
	}
	if lt := p.LaunchTemplate; lt != nil && lt.UserData.Text != "" {
		fmt.Fprintf(to, "\tuser data %s\n", hashOf([]byte(lt.UserData.Text)))
	}
	made, _ := newModel().pass(t, in)
	for _, s := range made.Steps {
		fmt.Fprintf(to, "\t%s %s %s", s.Verb, s.Resource, s.Name)
		if a, ok := s.Do.(step.CreateLaunchTemplate); ok {
			fmt.Fprintf(to, " %s", strings.Fields(a.Description)[0])
		}
		to.WriteString("\n")
	}
	for _, d := range made.Diagnostics {
		if d.Severity == diag.Error {
			fmt.Fprintf(to, "\t%s\n", d.Code)
		}
	}
	fmt.Fprintf(to, "\tdigest %s\n", made.Digest())
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}

// someAnswer is the same answer to the same lookup.
func someAnswer(l intent.Lookup) observed.Answer {
	id := hashOf([]byte(fmt.Sprint(l)))
	switch l.Kind {
	case intent.Subnets:
		return observed.Answer{Subnets: []string{"subnet-" + id}}
	case intent.CoreSecurityGroups, intent.SecurityGroupsByFilter:
		return observed.Answer{SecurityGroups: []string{"sg-" + id}}
	case intent.EKSCluster:
		return observed.Answer{Cluster: &observed.EKSCluster{
			Name: l.Name, ARN: "arn:aws:eks:eu-west-1:000000000000:cluster/" + l.Name, Status: "ACTIVE", Version: "1.34", Endpoint: "https://" + id,
			CertificateAuthority: "Y2E=", ServiceCIDR: "10.100.0.0/16", VPCID: "vpc-" + id, ClusterSecurityGroupID: "sg-" + id,
		}}
	case intent.Role:
		return observed.Answer{RoleARN: "arn:aws:iam::000000000000:role/" + l.Name}
	case intent.TemplateByName, intent.TemplateByID:
		return observed.Answer{Template: &observed.ForeignTemplate{ID: "lt-" + id, Name: l.Name, Version: 3, Latest: 3, Default: 3, Image: &observed.Image{ID: "ami-" + id, Architecture: "x86_64"}}}
	}
	return observed.Answer{Image: &observed.Image{ID: "ami-" + id, Architecture: "x86_64", RootDevice: "/dev/xvda", RootSize: 8}}
}

type hashedTree struct {
	name, path string
	tree       tree.Tree
	vars       map[string]string
}

// hashed are the manifests of package render's tests, and the example.
func hashed(t *testing.T) []hashedTree {
	t.Helper()
	var out []hashedTree
	archives, err := filepath.Glob("../../render/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files, in := tree.Map{}, hashedTree{name: filepath.Base(name), path: ".", vars: map[string]string{}}
		for line := range strings.Lines(string(a.Comment)) {
			if k, v, found := strings.Cut(strings.TrimSpace(line), ": "); found && k == "path" {
				in.path = v
			} else if found && k == "var" {
				name, value, _ := strings.Cut(v, "=")
				in.vars[name] = value
			}
		}
		for _, f := range a.Files {
			if !strings.HasPrefix(f.Name, "want/") {
				files[f.Name] = string(f.Data)
			}
		}
		in.tree = files
		out = append(out, in)
	}
	maximal, err := filepath.Glob("../../render/testdata/maximal/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range maximal {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, hashedTree{name: filepath.Base(name), path: "pool.yaml", tree: tree.Map{"pool.yaml": string(content)}})
	}
	example := tree.Map{}
	if err := filepath.WalkDir("../../example-repo", func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		example[strings.TrimPrefix(filepath.ToSlash(name), "../../example-repo/")] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"dev-eu", "dev-kubeadm", "prod-eu"} {
		out = append(out, hashedTree{name: "example " + overlay, path: "overlays/" + overlay, tree: example, vars: map[string]string{
			"CLUSTER_NAME": overlay, "KUBERNETES_VERSION": "v1.34.1", "AWS_REGION": "eu-west-1", "API_SERVER": "10.0.0.10",
			"JOIN_TOKEN": "abcdef.0123456789abcdef", "CA_CERT_HASH": "sha256:" + strings.Repeat("0", 64),
		}})
	}
	return out
}
