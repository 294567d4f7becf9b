package app

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// newImage publishes an image that is newer than those of earlier days.
func (w *world) newImage(day int) (id string) {
	w.t.Helper()
	id = fmt.Sprintf("ami-%017d", day)
	image := fmt.Sprintf(`{"id": %q, "name": "ours-%d", "architecture": "x86_64", "created": "2026-01-%02dT00:00:00Z"}`, id, day, day)
	if err := w.aws.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"images": [` + image + `]}}}`)); err != nil {
		w.t.Fatal(err)
	}
	return id
}

var imageOfVersion = regexp.MustCompile(`<imageId>(ami-\d+)</imageId>`)

// versions are the images of the versions of a launch template, the newest first.
func (w *world) versions(template string) (out []string) {
	w.t.Helper()
	for _, m := range imageOfVersion.FindAllStringSubmatch(w.query("ec2", "DescribeLaunchTemplateVersions&LaunchTemplateName="+template), -1) {
		out = append(out, m[1])
	}
	return out
}

// A whole daemon, and a newer image between review and merge: the merge applies what
// was shown, though the process has ended in between and the next one has seen the newer
// one, and the pool that follows images follows it afterwards.
func TestANewerImageBetweenReviewAndMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	first := w.newImage(1)
	looked := func(instanceType string) map[string]string {
		of := func(name, annotations string) string {
			text := strings.Replace(pool(name, instanceType, 3), "ami: {eksLookupType: AmazonLinux2023}", `imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"`, 1)
			at := strings.Index(text, "kind: AWSMachinePool\n")
			return text[:at] + strings.Replace(text[at:], "metadata: {name: "+name+"}", "metadata: {name: "+name+annotations+"}", 1)
		}
		return overlay(map[string]string{"keeps": of("keeps", ""), "follows": of("follows", ", annotations: {weir.dev/ami-policy: follow}")})
	}
	w.repo.Write(looked("m5.large"))
	main := w.repo.Commit("first")
	a, stop := w.start()
	converged(t, a, main, 2)

	second := w.newImage(2)
	stop()
	a, stop = w.start() // without what was cached
	eventually(t, "the second image", func() string {
		if got := w.versions("follows"); len(got) != 2 || got[0] != second {
			return fmt.Sprint(got)
		}
		return ""
	})
	converged(t, a, main, 2)
	head := w.propose(1, looked("m5.2xlarge"))
	eventually(t, "the plan", func() string {
		told := w.forge.told(1)
		if state, text := w.forge.last(head, "fleet/plan"); state != "success" || len(told) != 1 || !strings.Contains(told[0], second+" (ours-1, x86_64, 2026-01-01 → ours-2, x86_64, 2026-01-02)") {
			return fmt.Sprintf("%s %q %q", state, text, told)
		}
		return ""
	})
	stop()
	third := w.newImage(3)
	squash := w.repo.Git("commit-tree", head+"^{tree}", "-p", main, "-m", "squashed")
	w.repo.Branch("main", squash)
	w.forge.change(1, func(p *fakePull) { p.state, p.merged = "closed", squash })
	a, stop = w.start()
	defer func() { stop() }()
	eventually(t, "the third image", func() string {
		if got := w.versions("follows"); len(got) == 0 || got[0] != third {
			return fmt.Sprint(got)
		}
		return ""
	})
	converged(t, a, squash, 2)
	for template, want := range map[string][]string{"keeps": {second, first}, "follows": {third, second, second, first}} {
		if got := w.versions(template); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: versions with %v, want %v", template, got, want)
		}
	}
}
