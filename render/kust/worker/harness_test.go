package worker

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var roles = map[string]func(){"attempts": attempts, "replaced": replaced, "orphans": orphans}

// role starts this test program in a role.
func role(t *testing.T, program, name string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not Linux: the test reads the limits and memory of a process from /proc")
	}
	cmd := exec.Command(program, name)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"SECRET=seen"}
	return cmd
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {a: b}\n"

// job is a kustomization of fields over files.
func job(fields string, files map[string]string) *Job {
	j := &Job{
		Root: ".", Reads: 1000, Bytes: 1 << 24, Nodes: 100_000, Small: true,
		Paths: map[string]Path{".": {At: "."}, "kustomization.yaml": {At: "kustomization.yaml", File: true}, "kustomization.yml": {Missing: true}, "Kustomization": {Missing: true}},
		Files: map[string][]byte{"kustomization.yaml": []byte(fields)},
	}
	for name, content := range files {
		j.Files[name] = []byte(content)
		j.Paths[name] = Path{At: name, File: true}
	}
	return j
}

func simple() *Job {
	return job("resources: [a.yaml]\nnamePrefix: x-\n", map[string]string{"a.yaml": strings.ReplaceAll(configMap, "NAME", "a")})
}

// asking is simple with a file that the Job does not hold the path of.
func asking() *Job {
	j := simple()
	delete(j.Paths, "a.yaml")
	return j
}

// growing doubles a text thirty times.
func growing() *Job {
	return job("resources: [a.yaml]\nreplacements:\n"+strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: {delimiter: x, index: 99}}]}\n", 40),
		map[string]string{"a.yaml": strings.ReplaceAll(configMap, "NAME", "a")})
}

// endless compares some thousands of objects with each other, of which each refers to one.
func endless() *Job {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {volumes: [{name: a, configMap: {name: a%d}}]}\n", i, i, i)
	}
	j := job("resources: [a.yaml]\nnamePrefix: x-\nnameSuffix: -y\n", map[string]string{"a.yaml": b.String()})
	j.Small = false
	return j
}

// testLimits are DefaultLimits, save for the race detector, which takes far more memory.
func testLimits() Limits {
	l := DefaultLimits
	if raceEnabled {
		l.Memory, l.Small = 1<<46, 1<<46
	}
	return l
}

func noPath(path string) Path { return Path{Fault: "nobody asks for " + path} }

func enable(t *testing.T, l Limits) *pool {
	t.Helper()
	t.Cleanup(Enable(l))
	return enabled.Load()
}

func wantSimple(t *testing.T, nodes []*yaml.Node, err error) {
	t.Helper()
	if err != nil || len(nodes) != 1 || !strings.Contains(printed(nodes), "name: x-a") {
		t.Errorf("got %v and %s", err, printed(nodes))
	}
}

func printed(nodes []*yaml.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		out, err := yaml.Marshal(n)
		fmt.Fprintf(&b, "%s%v\n", out, err)
	}
	return b.String()
}
