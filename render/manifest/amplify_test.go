package manifest_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
)

// manyPools are n pools of one cluster, whose bootstrap is what boot says of each.
func manyPools(n int, boot func(i int) string) string {
	var docs []string
	for i := range n {
		name := fmt.Sprintf("web%d", i)
		pool := stream(machinePool("AWSMachinePool", "", boot(i)), groupPool("minSize: 1\nmaxSize: 2\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"))
		docs = append(docs, strings.ReplaceAll(pool, "name: web", "name: "+name))
	}
	return stream(docs...)
}

// One large bootstrap configuration is written out for each of its pools, and held
// once.
func TestUserDataOfManyPoolsIsHeldOnce(t *testing.T) {
	var files strings.Builder
	for i := range 40 {
		fmt.Fprintf(&files, "  - path: /f%d\n    content: %q\n", i, strings.Repeat("y", 10_000))
	}
	text := stream(manyPools(30, func(int) string {
		return "version: v1.31.0\nbootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: boot}}"
	}), "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: boot}\nspec:\n  files:\n"+files.String()+
		"  joinConfiguration:\n    discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: 'a:6443', caCertHashes: ['sha256:"+strings.Repeat("a", 64)+"']}}\n")
	set, faults := manifest.Intents(objects(t, text), manifest.Options{})
	if errs := briefly(faults, diag.Error); len(errs) > 0 || len(set.Pools) != 30 {
		t.Fatalf("%d pools, %v", len(set.Pools), errs)
	}
	first := set.Pools[0].LaunchTemplate.UserData.Text
	if len(first) < 400_000 {
		t.Fatalf("user data of %d bytes", len(first))
	}
	for _, p := range set.Pools[1:] {
		if text := p.LaunchTemplate.UserData.Text; text != first || unsafe.StringData(text) != unsafe.StringData(first) {
			t.Fatalf("pool %s has a text of its own", p.Key)
		}
	}
}

// Different texts that compress well are refused once they are too much together.
func TestUserDataOfARenderIsBounded(t *testing.T) {
	var secrets []string
	for i := range 70 {
		secrets = append(secrets, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: boot%d}\nstringData: {value: \"#cloud-config %d %s\"}", i, i, strings.Repeat("y", 1_000_000)))
	}
	text := stream(manyPools(70, func(i int) string { return fmt.Sprintf("bootstrap: {dataSecretName: boot%d}", i) }), stream(secrets...))
	set, faults := manifest.Intents(objects(t, text), manifest.Options{})
	total := 0
	for _, p := range set.Pools {
		total += len(p.LaunchTemplate.UserData.Text)
	}
	if total > 64<<20 || len(set.Pools) < 60 {
		t.Errorf("%d pools with %d bytes of user data", len(set.Pools), total)
	}
	if errs := briefly(faults, diag.Error); !slices.ContainsFunc(errs, func(s string) bool { return strings.HasPrefix(s, "user-data-too-large") }) {
		t.Errorf("faults: %.300q", errs)
	}
}

// A cluster's tags are not multiplied by its pools where they are far too many, and
// each of its pools is refused for them all the same.
func TestTagsOfAClusterAreNotMultiplied(t *testing.T) {
	var tags []string
	for range 5000 {
		var key [8]byte
		for i := range key {
			key[i] = byte(rand.Uint32())
		}
		tags = append(tags, hex.EncodeToString(key[:])+": v")
	}
	text := stream(manyPools(20, func(int) string { return noBootstrap }),
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c}\nspec: {infrastructureRef: {kind: AWSCluster, name: c}}",
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: c}\nspec:\n  region: eu-west-1\n  additionalTags: {"+strings.Join(tags, ", ")+"}")
	set, faults := manifest.Intents(objects(t, text), manifest.Options{})
	refused := 0
	for _, f := range faults {
		if f.Code == "too-many-tags" {
			refused++
		}
	}
	if len(set.Pools) > 0 || refused != 21 {
		t.Errorf("%d pools, %d refusals", len(set.Pools), refused)
	}
	for _, c := range set.Clusters {
		if len(c.Tags) > 200 {
			t.Errorf("the cluster has %d tags", len(c.Tags))
		}
	}
}
