package ec2

import (
	"cmp"
	"strconv"
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
	SnapshotGiB  int64  `json:",omitempty"` // size of SnapshotID, 0: VolumeGiB
	DataDevice   string // device of a second volume, "" for none
	DataGiB      int64
	Platform     string // PlatformDetails
	Public       bool
	Tags         world.Tags
}

// ResolveImage returns the image id for an id or a parameter reference, resolve:ssm:NAME.
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

type describeImagesInput struct {
	describe
	ImageIDs          []string
	Owners            []string
	ExecutableUsers   []string
	IncludeDeprecated bool
	IncludeDisabled   bool // the emulator has no disabled images
}

func (in *describeImagesInput) Check() error {
	for _, who := range in.ExecutableUsers {
		if who != "all" && who != "self" {
			return badValue("ExecutableBy", who, "The emulator knows all and self.")
		}
	}
	return in.bound(1, 1000, 0)
}

func imageAttributes() attributes[*Image] {
	text := func(get func(*Image) string) func(*Image) []string { return one(get) }
	constant := func(v string) func(*Image) []string { return func(*Image) []string { return []string{v} } }
	return attributes[*Image]{
		"image-id":                         text(func(im *Image) string { return im.ID }),
		"name":                             text(func(im *Image) string { return im.Name }),
		"description":                      text(func(im *Image) string { return im.Description }),
		"architecture":                     text(func(im *Image) string { return im.Architecture }),
		"owner-id":                         text(func(im *Image) string { return im.Owner }),
		"owner-alias":                      text(func(im *Image) string { return im.OwnerAlias }),
		"creation-date":                    text(func(im *Image) string { return im.Created.Format(wire.Time) }),
		"root-device-name":                 text(func(im *Image) string { return im.RootDevice }),
		"is-public":                        text(func(im *Image) string { return strconv.FormatBool(im.Public) }),
		"manifest-location":                text(func(im *Image) string { return im.location() }),
		"block-device-mapping.snapshot-id": text(func(im *Image) string { return im.SnapshotID }),
		"block-device-mapping.volume-size": text(func(im *Image) string { return wire.Decimal(im.VolumeGiB) }),
		"block-device-mapping.device-name": func(im *Image) []string { return []string{im.RootDevice, im.DataDevice} },
		"state":                            constant("available"),
		"root-device-type":                 constant("ebs"),
		"virtualization-type":              constant("hvm"),
		"hypervisor":                       constant("xen"),
		"image-type":                       constant("machine"),
		"ena-support":                      constant("true"),
		"sriov-net-support":                constant("simple"),
	}
}

func (im *Image) location() string { return cmp.Or(im.OwnerAlias, im.Owner) + "/" + im.Name }

func (im *Image) ownedBy(owner, account string) bool {
	return owner == im.Owner || owner == im.OwnerAlias && owner != "" || owner == "self" && im.Owner == account
}

func describeImages(rq *request, in describeImagesInput) error {
	r := rq.Region
	filtered, err := matcher(in.Filters, imageAttributes(), func(im *Image) world.Tags { return im.Tags })
	if err != nil {
		return err
	}
	match := func(im *Image) bool {
		if !im.Deprecated.IsZero() && im.Deprecated.Before(r.Now()) && !in.IncludeDeprecated && im.Owner != r.Account && len(in.ImageIDs) == 0 {
			return false
		}
		owned := len(in.Owners) == 0
		for _, owner := range in.Owners {
			owned = owned || im.ownedBy(owner, r.Account)
		}
		return owned && filtered(im)
	}
	missing := func(id string) *wire.Error {
		if !validID(id, "ami-") {
			return wire.Fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
		}
		return wire.Fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	return runDescribe(rq, in.describe, in.ImageIDs, &r.Images, match, missing, "imagesSet", func(im *Image) { writeImage(&rq.XML, im) })
}

func writeImage(w *wire.XML, im *Image) {
	w.Text("imageId", im.ID)
	w.Text("imageLocation", im.location())
	w.Text("imageState", "available")
	w.Text("imageOwnerId", im.Owner)
	w.Optional("imageOwnerAlias", im.OwnerAlias)
	w.Time("creationDate", im.Created)
	w.OptionalTime("deprecationTime", im.Deprecated)
	w.Boolean("isPublic", im.Public)
	w.Text("architecture", im.Architecture)
	w.Text("imageType", "machine")
	w.Text("platformDetails", cmp.Or(im.Platform, "Linux/UNIX"))
	w.Text("usageOperation", "RunInstances")
	w.Text("sriovNetSupport", "simple")
	w.Text("name", im.Name)
	w.Optional("description", im.Description)
	w.Text("rootDeviceType", "ebs")
	w.Text("rootDeviceName", im.RootDevice)
	w.Open("blockDeviceMapping")
	writeImageVolume(w, im.RootDevice, im.SnapshotID, im.VolumeGiB)
	if im.DataDevice != "" {
		writeImageVolume(w, im.DataDevice, "snap-"+world.Hash(im.SnapshotID, 17), im.DataGiB)
	}
	w.Close("blockDeviceMapping")
	w.Text("virtualizationType", "hvm")
	w.Text("hypervisor", "xen")
	w.Boolean("enaSupport", true)
	if im.Architecture == "arm64" {
		w.Text("bootMode", "uefi")
	}
	w.WriteTags(im.Tags)
}

func writeImageVolume(w *wire.XML, device, snapshot string, gib int64) {
	w.Open("item")
	w.Text("deviceName", device)
	w.Open("ebs")
	w.Text("snapshotId", snapshot)
	w.Integer("volumeSize", gib)
	w.Boolean("deleteOnTermination", true)
	w.Text("volumeType", "gp3")
	w.Integer("iops", 3000)
	w.Integer("throughput", 125)
	w.Boolean("encrypted", false)
	w.Close("ebs")
	w.Close("item")
}

// addImage stores an image. The ids of the image and its snapshot are derived from its name.
func (r *Region) addImage(im Image) *Image {
	im.ID = r.SeedID("ami", im.Name)
	im.SnapshotID = r.SeedID("snap", im.Name)
	im.Public = true
	im.Created = im.Created.Truncate(time.Second)
	r.Images.Put(im.ID, &im)
	return &im
}
