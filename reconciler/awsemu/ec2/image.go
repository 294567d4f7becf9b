package ec2

import (
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Image is a machine image (AMI).
type Image struct {
	ID           string
	Name         string
	Description  string
	Owner        string
	OwnerAlias   string // "amazon" or ""
	Architecture string // x86_64 or arm64
	Created      time.Time
	Deprecated   time.Time // zero: not deprecated
	RootDevice   string
	SnapshotID   string
	VolumeGiB    int64
	DataDevice   string // a second volume, "" for none
	DataGiB      int64
	Platform     string // PlatformDetails
	Public       bool
	Tags         world.Tags
}

// ResolveImage returns the image id that a launch names: an id or a reference to
// a parameter, resolve:ssm:NAME.
func (r *Region) ResolveImage(text string) (string, *wire.Error) {
	name, isParameter := strings.CutPrefix(text, "resolve:ssm:")
	if !isParameter {
		if text == "" {
			return "", wire.Fail("MissingParameter", "The request must contain the parameter ImageId")
		}
		return text, nil
	}
	if p := r.ssm.Find(name); p != nil {
		return p.Value, nil
	}
	return "", wire.Fail("InvalidParameterValue", "Value (%s) for parameter imageId is invalid. The parameter could not be found.", text)
}
