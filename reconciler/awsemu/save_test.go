package awsemu_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestSavedStateKeepsItsForm: a state is read by later emulators, so what leads from one
// room to another must not slip into it, nor may a room take its place under another
// name.
func TestSavedStateKeepsItsForm(t *testing.T) {
	e := start(t, awsemu.Options{})
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"parameters": {"/ours/ami": "ami-0123456789abcdef0"}}}}`)); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	var state struct {
		State struct {
			Regions map[string]map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(saved.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	region := state.State.Regions["000000000000/eu-west-1"]
	for name, want := range map[string][]string{
		"":            {"Account", "AutoScaling", "EC2", "EKS", "KMS", "Name", "SSM", "Tokens"},
		"EC2":         {"Images", "Instances", "KeyPairs", "LaunchTemplates", "MetadataDefaults", "SecurityGroups", "Subnets", "TemplateNames", "Vpcs"},
		"SSM":         {"Parameters"},
		"KMS":         {"Aliases", "Keys", "Made"},
		"AutoScaling": {"ActivitySeq", "Gone", "Groups"},
		"EKS":         {"Clusters"},
	} {
		part := region
		if name != "" {
			part = nil
			if err := json.Unmarshal(region[name], &part); err != nil {
				t.Fatal(err)
			}
		}
		if got := slices.Sorted(maps.Keys(part)); !slices.Equal(got, want) {
			t.Errorf("%s is saved as %v, want %v", name, got, want)
		}
	}
	again, err := awsemu.New(awsemu.Options{Clock: e.clock})
	if err != nil {
		t.Fatal(err)
	}
	text := saved.String()
	if err := again.Load(&saved); err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer
	if err := again.Save(&twice); err != nil {
		t.Fatal(err)
	}
	if twice.String() != text {
		t.Error("a state that is loaded and saved is another")
	}
}
