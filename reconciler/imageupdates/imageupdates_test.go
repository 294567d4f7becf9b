package imageupdates

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

func image(id, name, created string) *observed.Image {
	return &observed.Image{ID: id, Name: name, CreatedAt: created}
}

const eks = "amazon-eks-node-al2023-x86_64-standard-1.34-v20260101"

func pool(name, has string, im *observed.Image, newest observed.Answer) Pool {
	ref := intent.ObjectRef{Kind: "AWSMachinePool", Namespace: "default", Name: name}
	return Pool{Target: "t", Name: "default/" + name, At: intent.Pin{Object: ref}, Ask: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.34"}, Has: has, Image: im, Newest: newest}
}

func TestWhichIsNewer(t *testing.T) {
	old, young := image("ami-1", eks, "2026-01-01T00:00:00.000Z"), image("ami-2", eks, "2026-02-01T00:00:00.000Z")
	release := func(has, newest string) Pool {
		p := pool("a", has, nil, observed.Answer{Release: newest})
		p.Ask = intent.Lookup{Kind: intent.NodegroupRelease, Name: "AL2023_x86_64_STANDARD"}
		return p
	}
	moves := release("1.33.1-20260101", "1.34.1-20260101")
	moves.Moves = true
	unplanned := pool("a", "", nil, observed.Answer{})
	unplanned.Unknown = "its manifests have faults"
	for name, tt := range map[string]struct {
		p    Pool
		to   string
		gaps int
	}{
		"newer":               {pool("a", "ami-1", old, observed.Answer{Image: young}), "ami-2", 0},
		"the same":            {pool("a", "ami-2", young, observed.Answer{Image: young}), "", 0},
		"taken back by AWS":   {pool("a", "ami-2", young, observed.Answer{Image: old}), "", 0},
		"gone":                {pool("a", "ami-0", nil, observed.Answer{Image: old}), "ami-1", 0},
		"not made yet":        {pool("a", "", nil, observed.Answer{Image: young}), "", 0},
		"not planned":         {unplanned, "", 1},
		"none published":      {pool("a", "ami-1", old, observed.Answer{Code: "image-not-found", Problem: "there is none"}), "", 0},
		"denied":              {pool("a", "ami-1", old, observed.Answer{Code: "access-denied", Problem: "no"}), "", 1},
		"a newer release":     {release("1.34.1-20251231", "1.34.1-20260101"), "1.34.1-20260101", 0},
		"a later patch":       {release("1.34.9-20251231", "1.34.10-20260101"), "1.34.10-20260101", 0},
		"the same release":    {release("1.34.1-20260101", "1.34.1-20260101"), "", 0},
		"an older release":    {release("1.34.1-20260102", "1.34.1-20260101"), "", 0},
		"moves by itself":     {moves, "", 0},
		"after an upgrade":    {release("1.33.9-20260109", "1.34.1-20260101"), "1.34.1-20260101", 0},
		"nobody asks for one": {Pool{Has: "ami-1"}, "", 0},
	} {
		families, gaps := Find([]Pool{tt.p})
		got := ""
		if len(families) == 1 {
			got = families[0].Pins[0].To
			if families[0].Name != "EKS AL2023" {
				t.Errorf("%s: family %q", name, families[0].Name)
			}
		}
		if got != tt.to || len(gaps) != tt.gaps {
			t.Errorf("%s: %q, %v", name, got, gaps)
		}
	}
}

func TestPoolsThatShareAnObjectAgree(t *testing.T) {
	old, a, b := image("ami-0", "ours", "1"), image("ami-1", "ours", "2"), image("ami-2", "ours", "3")
	same := pool("a", "ami-0", old, observed.Answer{Image: a})
	other := pool("a", "ami-0", old, observed.Answer{Image: b})
	other.Name = "default/b"
	if families, gaps := Find([]Pool{same, other, pool("c", "ami-0", old, observed.Answer{Image: a})}); len(families) != 1 || len(families[0].Pins) != 1 || families[0].Pins[0].Pool != "default/c" || len(gaps) != 2 {
		t.Errorf("%v, %v", families, gaps)
	}
	other.Newest = same.Newest
	if families, gaps := Find([]Pool{same, other}); len(families) != 1 || len(families[0].Pins) != 2 || len(gaps) != 0 {
		t.Errorf("%v, %v", families, gaps)
	}
}

func TestFamilies(t *testing.T) {
	for want, asks := range map[string][]intent.Lookup{
		"EKS AmazonLinux2023": {{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33"}, {Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.34"}},
		"/ours/*/*/id":        {{Kind: intent.ImageByParameter, Name: "/ours/1.33/arm64/id"}, {Kind: intent.ImageByParameter, Name: "/ours/1.34/x86_64/id"}},
		"ours-*-*-*":          {{Kind: intent.ImageByName, Name: "ours-v1.34.2-amd64-*"}, {Kind: intent.ImageByName, Name: "ours-v1.33.9-arm64-*"}},
		"EKS AL2 GPU":         {{Kind: intent.NodegroupRelease, Name: "AL2_x86_64_GPU"}},
		"ours-2026":           {{Kind: intent.ImageByName, Name: "ours-2026"}},
	} {
		for _, l := range asks {
			if got := FamilyOf(l, nil); got != want {
				t.Errorf("%v: %q, want %q", l, got, want)
			}
		}
	}
	if got := FamilyOf(intent.Lookup{Kind: intent.ImageByParameter, Name: "/x"}, image("ami-1", eks, "")); got != "EKS AL2023" {
		t.Error(got)
	}
}

// TestTheOrderOfPoolsDoesNotMatter, and neither does asking again.
func TestTheOrderOfPoolsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pools []Pool
		for i := range rapid.IntRange(0, 12).Draw(t, "pools") {
			has, newest := rapid.IntRange(0, 3).Draw(t, "has"), rapid.IntRange(0, 3).Draw(t, "newest")
			im := func(n int) *observed.Image {
				return image(fmt.Sprint("ami-", n), rapid.SampledFrom([]string{"ours", eks}).Draw(t, "name"), fmt.Sprint(n))
			}
			p := pool(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "object")), fmt.Sprint("ami-", has), im(has), observed.Answer{Image: im(newest)})
			p.Name = fmt.Sprint("default/", i)
			pools = append(pools, p)
		}
		a, gaps := Find(pools)
		b, others := Find(rapid.Permutation(pools).Draw(t, "order"))
		text := func(v ...any) string { return strings.ReplaceAll(fmt.Sprintf("%+v", v), "0x", "") }
		for i := range a {
			if i >= len(b) || a[i].Name != b[i].Name || Print(a[i].Pins) != Print(b[i].Pins) || len(a[i].Pins) != len(b[i].Pins) {
				t.Fatalf("%s\n%s", text(a), text(b))
			}
			for _, p := range a[i].Pins {
				if p.From == p.To || p.FromImage.CreatedAt >= p.ToImage.CreatedAt {
					t.Fatalf("%+v is no newer one", p)
				}
			}
		}
		if len(gaps) != len(others) || len(a) != len(b) {
			t.Fatal(gaps, others)
		}
	})
}
