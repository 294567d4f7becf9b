package simulate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// planted are faults that weir does not have: what becomes of its code to have one, and the
// words of the promise that is then broken. The world is the usual one but for what is named,
// as make simulate names it.
var planted = []struct{ name, file, was, is, broken, world string }{
	{
		"a suspended target is written to", "reconciler/plan/model/gates.go",
		"case !asked && (in.Policy.Suspended || in.Policy.ReportOnly):", "case !asked && in.Policy.ReportOnly:",
		"which is suspended until", "",
	},
	{
		"a suspended pool is written to", "reconciler/plan/model/gates.go",
		`case !asked && in.Policy.Gates.Pools[pool.Key.String()] != "":`, "case false:",
		"which is suspended until", "",
	},
	{
		"versions in use are deleted", "reconciler/plan/template/prune.go",
		"return used[n] })", "return false })",
		"is deleted, which it uses", "",
	},
	{
		"who may not write approves", "status/pulls/commands.go",
		"if level < need {", "if level < need-2 {",
		"nobody has approved", "",
	},
	{
		"writes begin without a lease", "reconciler/awscloud/sdk/fence.go",
		"if err := f.MayBegin(); err != nil {", "if err := f.MayBegin(); err != nil && false {",
		" begins ", "MEMBERS=3",
	},
	{
		"members speak for a source that another owns", "cmd/weir/internal/follow/sources.go",
		"	if c == nil {\n		return nil\n	}\n	return s.Held\n", "	return nil\n",
		"speaks for the source", "MEMBERS=3",
	},
	{
		"nobody takes over from who is dead", "reconciler/coord/keeper_step.go",
		"case o.Known() && !o.Released && now.Lives(o.Session):", "case o.Known() && !o.Released:",
		"nobody owns", "MEMBERS=3",
	},
	{
		"more is deleted than the limit", "reconciler/plan/orphan/orphan.go",
		"refused := len(pools) > limit ||", "refused := len(pools) > 100*limit ||",
		"groups are deleted at commit", "EVENTS=200 FAULTS=0 SEEDS=9-12",
	},
}

// A world is worth what it finds: each of the planted faults is found by one of a few seeds.
func TestPlantedFaultsAreFound(t *testing.T) {
	if os.Getenv("WEIR_SIMULATE_PLANT") == "" {
		t.Skip("it builds weir once for each fault; make simulate PLANT=. runs it")
	}
	wanted(t)
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "simulate.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", plant(t, filepath.Join(root, p.file), p.was, p.is), "-o", program, "./cmd/weir/internal/simulate") //nolint:gosec // This module.
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text := os.Getenv("WEIR_SIMULATE_SEEDS")
			if _, own, named := strings.Cut(p.world, "SEEDS="); text == "" && named {
				text = own
			} else if text == "" {
				text = "1-8"
			}
			for _, seed := range seeds(t, text) {
				run := exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulate$", "-test.count", "1") //nolint:gosec // What was built.
				run.Env = os.Environ()
				for _, setting := range append(strings.Fields(p.world), "SEEDS="+strconv.FormatUint(seed, 10), "SHRINK=0", "LOG=") {
					run.Env = append(run.Env, "WEIR_SIMULATE_"+setting)
				}
				out, err := run.CombinedOutput()
				switch {
				case err == nil:
				case strings.Contains(string(out), p.broken):
					t.Logf("seed %d finds it", seed)
					return
				default:
					t.Logf("seed %d finds something else: %s", seed, out)
				}
			}
			t.Errorf("none of the seeds %s finds it", text)
		})
	}
}

// plant makes an overlay for the build in which a file says something else.
func plant(t *testing.T, file, was, is string) (overlay string) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // It is this repository's.
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), was); n != 1 {
		t.Fatalf("%s has %d times %q, which is to be planted over", file, n, was)
	}
	dir := t.TempDir()
	other := filepath.Join(dir, filepath.Base(file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: other}})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	for name, content := range map[string]string{other: strings.Replace(string(text), was, is, 1), overlay: string(list)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
