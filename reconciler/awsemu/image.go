package awsemu

import (
	"strings"
	"time"
)

// image is a machine image (AMI).
type image struct {
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
	Tags         tags
}

// resolveImage returns the image id that a launch names: an id or a reference to
// a parameter, resolve:ssm:NAME.
func (r *region) resolveImage(text string) (string, *apiError) {
	name, isParameter := strings.CutPrefix(text, "resolve:ssm:")
	if !isParameter {
		if text == "" {
			return "", fail("MissingParameter", "The request must contain the parameter ImageId")
		}
		return text, nil
	}
	if p := r.SSM.find(name); p != nil {
		return p.Value, nil
	}
	return "", fail("InvalidParameterValue", "Value (%s) for parameter imageId is invalid. The parameter could not be found.", text)
}
