package ec2

import (
	"cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Every snapshot here belongs to an image. An account sees only the snapshots of its own images, because
// permission to launch somebody else's image does not include its snapshot.

type describeSnapshotsInput struct {
	describe
	SnapshotIDs []string
	OwnerIDs    []string
}

func (in *describeSnapshotsInput) Check() error {
	if in.MaxResults != nil && len(in.SnapshotIDs) > 0 {
		return wire.Fail("InvalidParameterCombination", "The parameter snapshotSet cannot be used with the parameter maxResults")
	}
	return in.bound(5, 1000, 1000)
}

func describeSnapshots(rq *request, in describeSnapshotsInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, attributes[*Image]{
		"snapshot-id": one(func(im *Image) string { return im.SnapshotID }),
		"owner-id":    one(func(im *Image) string { return im.Owner }),
		"volume-size": one(func(im *Image) string { return wire.Decimal(im.snapshotGiB()) }),
		"status":      one(func(*Image) string { return "completed" }),
	}, func(*Image) world.Tags { return nil })
	if err != nil {
		return err
	}
	rows := &world.Table[*Image]{}
	for _, id := range r.Images.Sorted() {
		if im := r.Images.Get(id); im.Owner == r.Account {
			rows.Put(im.SnapshotID, im)
		}
	}
	missing := func(id string) *wire.Error {
		if !validID(id, "snap-") {
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter snapshotId is invalid. Expected: 'snap-...'.", id)
		}
		return wire.Fail("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", id)
	}
	return runDescribe(rq, in.describe, in.SnapshotIDs, rows, match, missing, "snapshotSet", func(im *Image) {
		w := &rq.XML
		w.Text("snapshotId", im.SnapshotID)
		w.Text("status", "completed")
		w.Text("progress", "100%")
		w.Time("startTime", im.Created)
		w.Text("ownerId", im.Owner)
		w.Integer("volumeSize", im.snapshotGiB())
		w.Text("description", "Created for "+im.ID)
		w.Boolean("encrypted", false)
	})
}

// snapshotGiB returns the size of the root volume's snapshot.
func (im *Image) snapshotGiB() int64 { return cmp.Or(im.SnapshotGiB, im.VolumeGiB) }
