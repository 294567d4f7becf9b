package awsemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// faultFile is what goes wrong, as JSON.
type faultFile struct {
	Launches []struct {
		InstanceType     string `json:"instanceType"`
		AvailabilityZone string `json:"availabilityZone"`
		ImageID          string `json:"imageId"`
		Code             string `json:"code"`
		Message          string `json:"message"`
		Stuck            bool   `json:"stuck"`
	} `json:"launches"`
	Hooks []struct {
		Group      string `json:"group"`
		Unanswered bool   `json:"unanswered"`
	} `json:"hooks"`
	Nodegroups []struct {
		Cluster   string   `json:"cluster"`
		Nodegroup string   `json:"nodegroup"`
		Issue     string   `json:"issue"`
		Message   string   `json:"message"`
		Resources []string `json:"resources"`
		Evictions bool     `json:"evictions"`
	} `json:"nodegroups"`
}

// Replace puts the faults of a file in the place of all launch, hook and nodegroup
// faults that are armed. The format is JSON; a selector that is missing fits all:
//
//	{"launches": [{"instanceType": "m5.large", "availabilityZone": "eu-west-1a", "imageId": "ami-0123456789abcdef0",
//	               "code": "VcpuLimitExceeded", "message": "You have requested more vCPU capacity …"},
//	              {"stuck": true}],
//	 "hooks": [{"group": "web", "unanswered": true}],
//	 "nodegroups": [{"cluster": "demo", "nodegroup": "web", "issue": "NodeCreationFailure", "message": "…", "resources": ["i-…"]},
//	                {"evictions": true}]}
//
// An unknown member is an error and changes nothing.
func (f *Faults) Replace(r io.Reader) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var file faultFile
	if err := dec.Decode(&file); err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read faults: text after the end")
	}
	var launch []*LaunchFault
	for _, l := range file.Launches {
		launch = append(launch, &LaunchFault{InstanceType: l.InstanceType, AvailabilityZone: l.AvailabilityZone, ImageID: l.ImageID, Code: l.Code, Message: l.Message, Stuck: l.Stuck})
	}
	var hooks []*HookFault
	for _, h := range file.Hooks {
		hooks = append(hooks, &HookFault{Group: h.Group, Unanswered: h.Unanswered})
	}
	var nodegroups []*NodegroupFault
	for _, n := range file.Nodegroups {
		nodegroups = append(nodegroups, &NodegroupFault{Cluster: n.Cluster, Nodegroup: n.Nodegroup, Issue: n.Issue, Message: n.Message, Resources: n.Resources, Evictions: n.Evictions})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launch, f.hooks, f.nodegroups = launch, hooks, nodegroups
	return nil
}
