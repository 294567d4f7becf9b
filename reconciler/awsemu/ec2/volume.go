package ec2

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Volume is an EBS volume. The volumes of instances are not stored. They are computed from the instance's
// launch settings, and disappear with the instance.
type Volume struct {
	ID        string
	Zone      string
	Type      string
	GiB       int64
	Iops      int64
	Encrypted bool
	Snapshot  string
	Created   time.Time
	Tags      world.Tags

	Instance string `json:"-"` // "": available
	Device   string `json:"-"`
	Ends     bool   `json:"-"` // deleted with the instance
	State    string `json:"-"` // of the attachment
}

// volumesOf returns the volumes of an instance: its image's volumes, with the changes and additions from the
// launch's mappings.
func (r *Region) volumesOf(in *Instance) []*Volume {
	if in.State == InstanceTerminated {
		return nil
	}
	data := r.launchData(in)
	var out []*Volume
	add := func(device string, ebs wire.Data, gib int64, snapshot string) {
		v := &Volume{
			ID: "vol-" + world.Hash("volume|"+in.ID+"|"+device, 17), Zone: in.Zone, Type: cmp.Or(ebs.Text("VolumeType"), "gp2"),
			GiB: cmp.Or(ebs.Integer("VolumeSize"), gib, 8), Encrypted: ebs.Text("Encrypted") == "true", Snapshot: cmp.Or(ebs.Text("SnapshotId"), snapshot),
			Created: in.LaunchTime, Tags: TagsFor(data, "volume"), Instance: in.ID, Device: device, Ends: ebs.Text("DeleteOnTermination") != "false", State: "attached",
		}
		v.Iops = ebs.Integer("Iops")
		switch {
		case v.Iops == 0 && v.Type == "gp3":
			v.Iops = 3000
		case v.Iops == 0 && v.Type == "gp2":
			v.Iops = min(max(3*v.GiB, 100), 16000)
		}
		if in.State == InstancePending {
			v.State = "attaching"
		}
		out = append(out, v)
	}
	mapped := map[string]wire.Data{}
	for _, m := range data.List("BlockDeviceMappings") {
		mapped[m.Text("DeviceName")] = m
	}
	own := map[string]bool{}
	if im := r.Images.Get(in.ImageID); im != nil {
		for _, d := range []Volume{{Device: im.RootDevice, GiB: im.VolumeGiB, Snapshot: im.SnapshotID}, {Device: im.DataDevice, GiB: im.DataGiB}} {
			if own[d.Device] = true; d.Device != "" && !mapped[d.Device].Has("NoDevice") {
				add(d.Device, mapped[d.Device].Sub("Ebs"), d.GiB, d.Snapshot)
			}
		}
	}
	for _, m := range data.List("BlockDeviceMappings") {
		if name := m.Text("DeviceName"); !own[name] && m.Has("Ebs") {
			add(name, m.Sub("Ebs"), 0, "")
		}
	}
	return out
}

// CheckVolumeSizes refuses a root volume that is smaller than its image's snapshot.
func (r *Region) CheckVolumeSizes(imageID string, data wire.Data) *wire.Error {
	im := r.Images.Get(imageID)
	if im == nil {
		return nil
	}
	least := im.snapshotGiB()
	for _, m := range data.List("BlockDeviceMappings") {
		if size := m.Sub("Ebs").Integer("VolumeSize"); m.Text("DeviceName") == im.RootDevice && m.Sub("Ebs").Has("VolumeSize") && size < least {
			return wire.Fail("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB", size, im.SnapshotID, least)
		}
	}
	return nil
}

// checkKeys terminates an instance if one of its volumes names a missing or disabled KMS key: EC2 starts the
// instance and cannot attach the volume. Keys of other accounts count as usable.
func (r launcher) checkKeys(in *Instance, data wire.Data) {
	for _, m := range data.List("BlockDeviceMappings") {
		name := m.Sub("Ebs").Text("KmsKeyId")
		if name == "" || r.kms.OfAnother(name) {
			continue
		}
		if k, err := r.kms.FindKey(name); err != nil || k.Disabled {
			in.Dies = "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
		}
	}
}

// writeDevices writes the device mappings of an instance's volumes.
func (r *Region) writeDevices(w *wire.XML, in *Instance) {
	wire.List(w, "blockDeviceMapping", "item", r.volumesOf(in), func(v *Volume) {
		w.Text("deviceName", v.Device)
		w.Open("ebs")
		w.Text("volumeId", v.ID)
		w.Text("status", v.State)
		w.Time("attachTime", v.Created)
		w.Boolean("deleteOnTermination", v.Ends)
		w.Close("ebs")
	})
}

type describeVolumesInput struct {
	describe
	VolumeIDs               []string
	IncludeManagedResources bool
}

func (in *describeVolumesInput) Check() error {
	if in.MaxResults != nil && len(in.VolumeIDs) > 0 {
		return wire.Fail("InvalidParameterCombination", "The parameter volumeSet cannot be used with the parameter maxResults")
	}
	return in.bound(5, 1000, 1000)
}

func describeVolumes(rq *request, in describeVolumesInput) error {
	r := rq.Region
	boolean := func(get func(*Volume) bool) func(*Volume) []string {
		return one(func(v *Volume) string { return strconv.FormatBool(get(v)) })
	}
	attached := func(get func(*Volume) string) func(*Volume) []string {
		return func(v *Volume) []string {
			if v.Instance == "" {
				return nil
			}
			return []string{get(v)}
		}
	}
	match, err := matcher(in.Filters, attributes[*Volume]{
		"volume-id":              one(func(v *Volume) string { return v.ID }),
		"volume-type":            one(func(v *Volume) string { return v.Type }),
		"availability-zone":      one(func(v *Volume) string { return v.Zone }),
		"size":                   one(func(v *Volume) string { return wire.Decimal(v.GiB) }),
		"snapshot-id":            one(func(v *Volume) string { return v.Snapshot }),
		"status":                 one((*Volume).status),
		"create-time":            one(func(v *Volume) string { return v.Created.Format(wire.Time) }),
		"encrypted":              boolean(func(v *Volume) bool { return v.Encrypted }),
		"attachment.instance-id": attached(func(v *Volume) string { return v.Instance }),
		"attachment.device":      attached(func(v *Volume) string { return v.Device }),
		"attachment.status":      attached(func(v *Volume) string { return v.State }),
		"attachment.delete-on-termination": attached(func(v *Volume) string {
			return strconv.FormatBool(v.Ends)
		}),
	}, func(v *Volume) world.Tags { return v.Tags })
	if err != nil {
		return err
	}
	rows := &world.Table[*Volume]{}
	for _, id := range r.Volumes.Sorted() {
		rows.Put(id, r.Volumes.Get(id))
	}
	for _, id := range r.Instances.Sorted() {
		for _, v := range r.volumesOf(r.Instances.Get(id)) {
			rows.Put(v.ID, v)
		}
	}
	missing := func(id string) *wire.Error {
		if !validID(id, "vol-") {
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter volumeId is invalid. Expected: 'vol-...'.", id)
		}
		return wire.Fail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	}
	return runDescribe(rq, in.describe, in.VolumeIDs, rows, match, missing, "volumeSet", func(v *Volume) { v.write(&rq.XML) })
}

func (v *Volume) status() string {
	if v.Instance == "" {
		return "available"
	}
	return "in-use"
}

func (v *Volume) write(w *wire.XML) {
	w.Text("volumeId", v.ID)
	w.Integer("size", v.GiB)
	w.Text("snapshotId", v.Snapshot)
	w.Text("availabilityZone", v.Zone)
	w.Text("status", v.status())
	w.Time("createTime", v.Created)
	w.Open("attachmentSet")
	if v.Instance != "" {
		w.Open("item")
		w.Text("volumeId", v.ID)
		w.Text("instanceId", v.Instance)
		w.Text("device", v.Device)
		w.Text("status", v.State)
		w.Time("attachTime", v.Created)
		w.Boolean("deleteOnTermination", v.Ends)
		w.Close("item")
	}
	w.Close("attachmentSet")
	w.WriteTags(v.Tags)
	w.Text("volumeType", v.Type)
	if v.Iops > 0 {
		w.Integer("iops", v.Iops)
	}
	w.Boolean("encrypted", v.Encrypted)
	w.Boolean("multiAttachEnabled", false)
}

type seedVolume struct {
	ID   string            `json:"id"`
	Zone string            `json:"zone"`
	Type string            `json:"type"` // "": gp3
	GiB  int64             `json:"gib"`  // 0: 8
	Tags map[string]string `json:"tags"`
}

// applyVolume adds an unattached volume.
func (r seeder) applyVolume(s seedVolume) error {
	kind, size := cmp.Or(s.Type, "gp3"), cmp.Or(s.GiB, 8)
	rule := volumeRuleOf(kind)
	switch {
	case r.Volumes.Has(s.ID):
		return nil
	case !validID(s.ID, "vol-"):
		return errors.New("its id is malformed")
	case !slices.Contains(r.Zones(), s.Zone):
		return fmt.Errorf("zone %q is unknown", s.Zone)
	case !slices.Contains([]string{"gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"}, kind):
		return fmt.Errorf("type %q is unknown", kind)
	case size < rule.lowGiB || size > rule.highGiB:
		return fmt.Errorf("%d GiB are none that %s has", size, kind)
	}
	r.Volumes.Put(s.ID, &Volume{ID: s.ID, Zone: s.Zone, Type: kind, GiB: size, Created: world.SeedTime(), Tags: tagsOf(s.Tags)})
	return nil
}
