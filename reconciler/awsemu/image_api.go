package awsemu

import (
	"strconv"
	"time"
)

type describeImagesInput struct {
	describe
	owners     []string
	deprecated bool
}

func parseDescribeImages(p *params) describeImagesInput {
	p.boolean("IncludeDisabled") // the emulator has no disabled images
	in := describeImagesInput{
		describe: parseDescribe(p, "ImageId", 1, 1000, 0),
		owners:   p.strings("Owner"), deprecated: p.boolean("IncludeDeprecated"),
	}
	for _, who := range p.strings("ExecutableBy") {
		if who != "all" && who != "self" {
			p.bad("ExecutableBy", who, "The emulator knows all and self.")
		}
	}
	return in
}

func imageAttributes() attributes[*image] {
	text := func(get func(*image) string) func(*image) []string { return one(get) }
	constant := func(v string) func(*image) []string { return func(*image) []string { return []string{v} } }
	return attributes[*image]{
		"image-id":                         text(func(im *image) string { return im.ID }),
		"name":                             text(func(im *image) string { return im.Name }),
		"description":                      text(func(im *image) string { return im.Description }),
		"architecture":                     text(func(im *image) string { return im.Architecture }),
		"owner-id":                         text(func(im *image) string { return im.Owner }),
		"owner-alias":                      text(func(im *image) string { return im.OwnerAlias }),
		"creation-date":                    text(func(im *image) string { return im.Created.Format(xmlTime) }),
		"root-device-name":                 text(func(im *image) string { return im.RootDevice }),
		"is-public":                        text(func(im *image) string { return strconv.FormatBool(im.Public) }),
		"manifest-location":                text(func(im *image) string { return im.location() }),
		"block-device-mapping.snapshot-id": text(func(im *image) string { return im.SnapshotID }),
		"block-device-mapping.volume-size": text(func(im *image) string { return decimal(im.VolumeGiB) }),
		"block-device-mapping.device-name": func(im *image) []string { return []string{im.RootDevice, im.DataDevice} },
		"state":                            constant("available"),
		"root-device-type":                 constant("ebs"),
		"virtualization-type":              constant("hvm"),
		"hypervisor":                       constant("xen"),
		"image-type":                       constant("machine"),
		"ena-support":                      constant("true"),
		"sriov-net-support":                constant("simple"),
	}
}

func (im *image) location() string { return first(im.OwnerAlias, im.Owner) + "/" + im.Name }

func (im *image) ownedBy(owner, account string) bool {
	return owner == im.Owner || owner == im.OwnerAlias && owner != "" || owner == "self" && im.Owner == account
}

func describeImages(rq *request, in describeImagesInput) error {
	r := rq.region
	filtered, err := matcher(in.filters, imageAttributes(), func(im *image) tags { return im.Tags })
	if err != nil {
		return err
	}
	match := func(im *image) bool {
		if !im.Deprecated.IsZero() && im.Deprecated.Before(r.now()) && !in.deprecated && im.Owner != r.Account && len(in.ids) == 0 {
			return false
		}
		owned := len(in.owners) == 0
		for _, owner := range in.owners {
			owned = owned || im.ownedBy(owner, r.Account)
		}
		return owned && filtered(im)
	}
	missing := func(id string) *apiError {
		if !validID(id, "ami-") {
			return fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
		}
		return fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	return runDescribe(rq, in.describe, &r.EC2.Images, match, missing, "imagesSet", rq.xml.writeImage)
}

func (w *xmlWriter) writeImage(im *image) {
	w.text("imageId", im.ID)
	w.text("imageLocation", im.location())
	w.text("imageState", "available")
	w.text("imageOwnerId", im.Owner)
	w.optional("imageOwnerAlias", im.OwnerAlias)
	w.time("creationDate", im.Created)
	if !im.Deprecated.IsZero() {
		w.time("deprecationTime", im.Deprecated)
	}
	w.boolean("isPublic", im.Public)
	w.text("architecture", im.Architecture)
	w.text("imageType", "machine")
	w.text("platformDetails", first(im.Platform, "Linux/UNIX"))
	w.text("usageOperation", "RunInstances")
	w.text("sriovNetSupport", "simple")
	w.text("name", im.Name)
	w.optional("description", im.Description)
	w.text("rootDeviceType", "ebs")
	w.text("rootDeviceName", im.RootDevice)
	w.open("blockDeviceMapping")
	w.writeImageVolume(im.RootDevice, im.SnapshotID, im.VolumeGiB)
	if im.DataDevice != "" {
		w.writeImageVolume(im.DataDevice, "snap-"+hashHex(im.SnapshotID, 17), im.DataGiB)
	}
	w.close("blockDeviceMapping")
	w.text("virtualizationType", "hvm")
	w.text("hypervisor", "xen")
	w.boolean("enaSupport", true)
	if im.Architecture == "arm64" {
		w.text("bootMode", "uefi")
	}
	w.writeTags(im.Tags)
}

func (w *xmlWriter) writeImageVolume(device, snapshot string, gib int64) {
	w.open("item")
	w.text("deviceName", device)
	w.open("ebs")
	w.text("snapshotId", snapshot)
	w.integer("volumeSize", gib)
	w.boolean("deleteOnTermination", true)
	w.text("volumeType", "gp3")
	w.integer("iops", 3000)
	w.integer("throughput", 125)
	w.boolean("encrypted", false)
	w.close("ebs")
	w.close("item")
}

// addImage stores an image; its id and its snapshot's derive from its name.
func (r *region) addImage(im image) *image {
	im.ID = r.seedID("ami", im.Name)
	im.SnapshotID = r.seedID("snap", im.Name)
	im.Public = true
	im.Created = im.Created.Truncate(time.Second)
	r.EC2.Images.put(im.ID, &im)
	return &im
}
