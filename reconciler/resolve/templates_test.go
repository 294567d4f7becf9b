package resolve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

func versionWith(image, instanceType string) resolve.TemplateVersion {
	return resolve.TemplateVersion{Data: intent.TemplateData{ImageID: image, InstanceType: instanceType}}
}

// templates is a world with launch templates that others made.
func templates() *fakeCloud {
	f := world()
	f.templates = []resolve.Template{{ID: "lt-1", Name: "golden", Latest: 3, Default: 2}, {ID: "lt-2", Name: "bare", Latest: 1, Default: 1}}
	f.versions = map[string]resolve.TemplateVersion{
		"lt-1 1": versionWith("ami-al2arm", ""), "lt-1 2": versionWith("ami-al2arm", "m6g.large"), "lt-1 3": versionWith("ami-al2023", "m5.large"), "lt-2 1": versionWith("", ""),
		"lt-1 4": versionWith("resolve:ssm:/mine", "m5.large"),
		"lt-1 5": versionWith("resolve:ssm:/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/recommended/image_id", "m5.large"),
		"lt-1 6": versionWith("resolve:ssm:/none", "m5.large"), "lt-1 7": versionWith("ami-gone", "m5.large"), "lt-1 8": versionWith("ami-al2023", "m5.huge"),
	}
	return f
}

func TestForeignTemplates(t *testing.T) {
	byName := func(name, version, types string) intent.Lookup {
		return intent.Lookup{Kind: intent.TemplateByName, Name: name, Version: version, InstanceType: types}
	}
	tests := map[string]struct {
		ask  intent.Lookup
		fail map[string]error
		want string
	}{
		"newest":                         {ask: byName("golden", "$Latest", ""), want: "golden 3 ami-al2023"},
		"default":                        {ask: byName("golden", "$Default", ""), want: "golden 2 ami-al2arm"},
		"by id":                          {ask: intent.Lookup{Kind: intent.TemplateByID, Name: "lt-1", Version: "$Latest"}, want: "golden 3 ami-al2023"},
		"a number":                       {ask: byName("golden", "1", "m6g.large"), want: "golden 1 ami-al2arm"},
		"without an image":               {ask: byName("bare", "$Latest", "m5.large"), want: "bare 1 "},
		"no such name":                   {ask: byName("none", "$Latest", ""), want: "launch-template-not-found: none"},
		"no such id":                     {ask: intent.Lookup{Kind: intent.TemplateByID, Name: "lt-9", Version: "$Latest"}, want: "launch-template-not-found: lt-9"},
		"no such version":                {ask: byName("golden", "9", ""), want: "launch-template-version-not-found: no version 9"},
		"all types fit":                  {ask: byName("golden", "$Latest", "m5.large,t2.micro"), want: "golden 3 ami-al2023"},
		"one type does not":              {ask: byName("golden", "$Latest", "m5.large,m6g.large"), want: "architecture-mismatch: is x86_64, but m6g.large is arm64"},
		"overrides replace its own type": {ask: byName("golden", "$Default", "m5.large"), want: "architecture-mismatch: is arm64, but m5.large is x86_64"},
		"a type that is not offered":     {ask: byName("golden", "8", ""), want: "instance-type-unknown: m5.huge"},
		"an image that is gone":          {ask: byName("golden", "7", ""), want: "image-not-found: the launch template golden names it"},
		"a parameter that does not fit":  {ask: byName("golden", "5", ""), want: "architecture-mismatch: ami-al2023arm of the launch template golden is arm64"},
		"a parameter that is not there":  {ask: byName("golden", "6", ""), want: "parameter-not-found: /none"},
		"a parameter of a dead image":    {ask: byName("golden", "4", ""), want: "image-not-found: /mine"},
		"types that weir may not see": {ask: byName("golden", "$Latest", ""), want: "architecture-mismatch: cannot tell",
			fail: map[string]error{"Architectures": &observed.Error{Kind: observed.Denied, Message: "no"}}},
		"a parameter that weir may not see": {ask: byName("golden", "5", ""), want: "access-denied: no", fail: map[string]error{"Parameters": &observed.Error{Kind: observed.Denied, Message: "no"}}},
		"templates that weir may not see":   {ask: byName("golden", "$Latest", ""), want: "access-denied: no", fail: map[string]error{"TemplatesByName": &observed.Error{Kind: observed.Denied, Message: "no"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := templates()
			f.fail = tt.fail
			a, err := resolve.New(f, nil).Answer(context.Background(), []resolve.Request{{Lookup: tt.ask}})
			if err != nil {
				t.Fatal(err)
			}
			got := a[0].Code + ": " + a[0].Problem
			if v := a[0].Template; v != nil {
				got = v.Name + " " + string(rune('0'+v.Version)) + " "
				if v.Image != nil {
					got += v.Image.ID
				}
			}
			code, part, _ := strings.Cut(tt.want, ": ")
			if !strings.HasPrefix(got, code) || !strings.Contains(got, part) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestForeignTemplatesAreReadTogetherAndKept(t *testing.T) {
	f, c := templates(), newClock()
	r := resolve.New(f, c.now)
	requests := []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "golden", Version: "$Latest"}},
		{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "bare", Version: "$Latest"}},
		{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "golden", Version: "$Default", InstanceType: "m6g.large"}},
		{Lookup: intent.Lookup{Kind: intent.TemplateByID, Name: "lt-1", Version: "$Latest"}},
	}
	ask := func() []observed.Answer {
		t.Helper()
		a, err := r.Answer(context.Background(), requests)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask()
	want := map[string]int{"TemplatesByName": 1, "TemplatesByID": 1, "TemplateVersion": 3, "Images": 1, "Architectures": 1}
	if d := cmp.Diff(want, f.take()); d != "" {
		t.Errorf("calls at first (-want +got):\n%s", d)
	}
	ask()
	if got := f.take(); len(got) != 0 {
		t.Errorf("calls at once again: %v, want none", got)
	}
	// A minute later the templates are looked at again, and nothing else.
	c.t = c.t.Add(time.Minute)
	f.templates[0].Latest, f.versions["lt-1 4"] = 4, versionWith("ami-al2", "m5.large")
	if a := ask(); a[0].Template.Version != 4 || a[2].Template.Version != 2 {
		t.Errorf("versions %d and %d, want 4 and 2", a[0].Template.Version, a[2].Template.Version)
	}
	want = map[string]int{"TemplatesByName": 1, "TemplatesByID": 1, "TemplateVersion": 1, "Images": 1}
	if d := cmp.Diff(want, f.take()); d != "" {
		t.Errorf("calls a minute later (-want +got):\n%s", d)
	}
}

// An answer of AWS that is older than the one before must roll nothing back; a
// newest version that was deleted does.
func TestTheNewestVersionDoesNotGoBackByItself(t *testing.T) {
	f, c := templates(), newClock()
	r := resolve.New(f, c.now)
	newest := func() int64 {
		t.Helper()
		c.t = c.t.Add(time.Minute)
		a, err := r.Answer(context.Background(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "golden", Version: "$Latest"}}})
		if err != nil || a[0].Template == nil {
			t.Fatal(err, a)
		}
		return a[0].Template.Version
	}
	if got := newest(); got != 3 {
		t.Fatalf("version %d, want 3", got)
	}
	f.templates[0].Latest = 2
	if got := newest(); got != 3 {
		t.Errorf("an old answer: version %d, want 3", got)
	}
	delete(f.versions, "lt-1 3")
	if got := newest(); got != 2 {
		t.Errorf("the newest was deleted: version %d, want 2", got)
	}
}

func TestAForeignTemplateThatCannotBeReadNowFailsThePass(t *testing.T) {
	f := templates()
	f.fail = map[string]error{"TemplateVersion": &observed.Error{Kind: observed.Throttled, Message: "slow down"}}
	_, err := resolve.New(f, nil).Answer(context.Background(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "golden", Version: "$Latest"}}})
	if err == nil {
		t.Error("a throttled call was taken for an answer")
	}
}

// The resolver forgets what nobody asks for any more, also where nobody asks for
// anything.
func TestFactsThatNobodyAsksForAreForgotten(t *testing.T) {
	f, c := templates(), newClock()
	r := resolve.New(f, c.now)
	for i := range 100 {
		name := fmt.Sprint("golden-", i)
		f.templates = append(f.templates, resolve.Template{ID: fmt.Sprint("lt-1", i), Name: name, Latest: 3, Default: 1})
		if _, err := r.Answer(t.Context(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: name, Version: "$Latest"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Known(); n < 200 {
		t.Fatalf("%d facts are known of 100 templates", n)
	}
	c.t = c.t.Add(25 * time.Hour)
	if _, err := r.Answer(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := r.Known(); n > 0 {
		t.Errorf("%d facts are still known", n)
	}
}

// TestManyTemplatesAreReadTogether: the newest and default versions of many templates are
// in one list, and only what is in none of it is asked for by itself.
func TestManyTemplatesAreReadTogether(t *testing.T) {
	f := world()
	f.common = 2
	f.templates, f.versions = nil, map[string]resolve.TemplateVersion{}
	var requests []resolve.Request
	for i := range 40 {
		id := fmt.Sprint("lt-", i)
		f.templates = append(f.templates, resolve.Template{ID: id, Name: "t" + id, Latest: 2, Default: 1})
		version := intent.LatestVersion
		if i == 7 {
			version = "1"
		}
		f.versions[id+" 1"], f.versions[id+" 2"] = versionWith("", "m5.large"), versionWith("", "m5.large")
		requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "t" + id, Version: version}})
	}
	answers, err := resolve.New(f, newClock().now).Answer(context.Background(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if want := map[bool]int64{true: 1, false: 2}[i == 7]; a.Template == nil || a.Template.Version != want {
			t.Errorf("%d: %+v", i, a)
		}
	}
	want := map[string]int{"TemplatesByName": 1, "CommonTemplateVersions": 1, "TemplateVersion": 1}
	if d := cmp.Diff(want, f.take()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}
