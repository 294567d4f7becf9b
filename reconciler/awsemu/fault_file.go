package awsemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
)

// faultFile is the JSON format of faults.
type faultFile struct {
	Launches   []ec2.LaunchFault    `json:"launches"`
	Hooks      []asg.HookListener   `json:"hooks"`
	Nodegroups []eks.NodegroupFault `json:"nodegroups"`
}

// Replace arms the faults of a file. They replace all launch, hook and nodegroup faults that were armed
// before. The format is JSON. A missing selector matches everything:
//
//	{"launches": [{"instanceType": "m5.large", "availabilityZone": "eu-west-1a", "imageId": "ami-0123456789abcdef0",
//	               "code": "VcpuLimitExceeded", "message": "You have requested more vCPU capacity …"},
//	              {"stuck": true}],
//	 "hooks": [{"group": "web", "result": "ABANDON"}],
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
	f.Launches.Replace(file.Launches)
	f.Hooks.Replace(file.Hooks)
	f.Nodegroups.Replace(file.Nodegroups)
	return nil
}
