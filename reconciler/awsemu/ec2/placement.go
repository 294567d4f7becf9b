package ec2

import (
	"cmp"
	"errors"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// PlacementGroup controls how close to each other instances run.
type PlacementGroup struct {
	ID         string
	Name       string
	Strategy   string // cluster, spread or partition
	Partitions int64  // of a partition group
	Level      string // of a spread group: host or rack
	Tags       world.Tags
}

// placementGroup finds a placement group by name or id. It returns nil if none exists.
func (r *Region) placementGroup(name, id string) *PlacementGroup {
	for _, key := range r.PlacementGroups.Sorted() {
		if g := r.PlacementGroups.Get(key); name != "" && g.Name == name || id != "" && g.ID == id {
			return g
		}
	}
	return nil
}

// join adds an instance to the placement group in its placement settings.
func (r launcher) join(in *Instance, placement wire.Data) *wire.Error {
	name, id := placement.Text("GroupName"), placement.Text("GroupId")
	if name == "" && id == "" {
		return nil
	}
	g := r.placementGroup(name, id)
	switch {
	case g == nil && name == "":
		return noPlacementGroupID(id)
	case g == nil:
		return noPlacementGroup(name)
	case g.Strategy == "cluster" && Burstable(in.Type):
		return wire.Fail("InvalidParameterCombination", "Cluster placement groups are not supported by the '%s' instance type. Specify a supported instance type or change the placement group strategy, and try again.", in.Type)
	case placement.Integer("PartitionNumber") > g.Partitions:
		return wire.Fail("InvalidParameterValue", "The placement group '%s' has no partition %s", g.Name, placement.Text("PartitionNumber"))
	}
	in.PlacementGroup = g.Name
	return nil
}

func noPlacementGroup(name string) *wire.Error {
	return wire.Fail("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}

func noPlacementGroupID(id string) *wire.Error {
	if !validID(id, "pg-") {
		return wire.Fail("InvalidPlacementGroupId.Malformed", "Invalid id: \"%s\"", id)
	}
	return wire.Fail("InvalidPlacementGroup.Unknown", "The placement group ID '%s' is unknown.", id)
}

type createPlacementGroupInput struct {
	GroupName, Strategy, SpreadLevel string
	PartitionCount                   *int64
	tagSpecifications
}

func (in *createPlacementGroupInput) Check() error {
	in.Strategy = cmp.Or(in.Strategy, "cluster")
	n := in.PartitionCount
	switch {
	case in.GroupName == "":
		return wire.Fail("MissingParameter", "The request must contain the parameter groupName")
	case len(in.GroupName) > 255:
		return badValue("groupName", in.GroupName, "The name must have at most 255 characters.")
	case in.SpreadLevel != "" && in.Strategy != "spread":
		return wire.Fail("InvalidParameterCombination", "The parameter SpreadLevel may only be specified with the spread strategy")
	case n != nil && in.Strategy != "partition":
		return wire.Fail("InvalidParameterCombination", "The parameter PartitionCount may only be specified with the partition strategy")
	case n != nil && (*n < 1 || *n > 7):
		return badValue("PartitionCount", wire.Decimal(*n), "Expecting value between 1 and 7.")
	}
	return in.read("placement-group")
}

func createPlacementGroup(rq *request, in createPlacementGroupInput) error {
	r := rq.Region
	switch {
	case r.placementGroup(in.GroupName, "") != nil:
		return wire.Fail("InvalidPlacementGroup.Duplicate", "The placement group '%s' already exists.", in.GroupName)
	case r.PlacementGroups.Len() >= r.Quota("placement-groups"):
		return wire.Fail("PlacementGroupLimitExceeded", "You've reached the limit on the number of placement groups: %d", r.Quota("placement-groups"))
	}
	g := r.addPlacementGroup(r.NewID("pg"), in)
	rq.XML.Boolean("return", true)
	rq.XML.Open("placementGroup")
	g.write(&rq.XML, r)
	rq.XML.Close("placementGroup")
	return nil
}

// addPlacementGroup stores the placement group of a valid request.
func (r *Region) addPlacementGroup(id string, in createPlacementGroupInput) *PlacementGroup {
	g := &PlacementGroup{ID: id, Name: in.GroupName, Strategy: in.Strategy, Tags: in.tags}
	switch g.Strategy {
	case "spread":
		g.Level = cmp.Or(in.SpreadLevel, "rack")
	case "partition":
		g.Partitions = 2
		if in.PartitionCount != nil {
			g.Partitions = *in.PartitionCount
		}
	}
	r.PlacementGroups.Put(g.ID, g)
	return g
}

func (g *PlacementGroup) write(w *wire.XML, r *Region) {
	w.Text("groupName", g.Name)
	w.Text("state", "available")
	w.Text("strategy", g.Strategy)
	w.Text("groupId", g.ID)
	w.Text("groupArn", r.ARN("ec2", "placement-group/"+g.Name))
	if g.Partitions > 0 {
		w.Integer("partitionCount", g.Partitions)
	}
	w.Optional("spreadLevel", g.Level)
	w.WriteTags(g.Tags)
}

type describePlacementGroupsInput struct {
	Filters              []filter
	GroupIDs, GroupNames []string
}

func (in *describePlacementGroupsInput) Check() error { return checkFilters(in.Filters) }

func describePlacementGroups(rq *request, in describePlacementGroupsInput) error {
	r := rq.Region
	for _, name := range in.GroupNames {
		g := r.placementGroup(name, "")
		if g == nil {
			return noPlacementGroup(name)
		}
		in.GroupIDs = append(in.GroupIDs, g.ID)
	}
	match, err := matcher(in.Filters, attributes[*PlacementGroup]{
		"group-name":   one(func(g *PlacementGroup) string { return g.Name }),
		"group-arn":    one(func(g *PlacementGroup) string { return r.ARN("ec2", "placement-group/"+g.Name) }),
		"spread-level": one(func(g *PlacementGroup) string { return g.Level }),
		"state":        one(func(*PlacementGroup) string { return "available" }),
		"strategy":     one(func(g *PlacementGroup) string { return g.Strategy }),
	}, func(g *PlacementGroup) world.Tags { return g.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, describe{}, in.GroupIDs, &r.PlacementGroups, match, noPlacementGroupID, "placementGroupSet", func(g *PlacementGroup) { g.write(&rq.XML, r) })
}

func deletePlacementGroup(rq *request, in struct{ GroupName string }) error {
	r := rq.Region
	g := r.placementGroup(in.GroupName, "")
	if g == nil {
		return noPlacementGroup(in.GroupName)
	}
	for _, id := range r.Instances.Sorted() {
		if in := r.Instances.Get(id); in.PlacementGroup == g.Name && in.State != InstanceTerminated {
			return wire.Fail("InvalidPlacementGroup.InUse", "The placement group '%s' is in use and may not be deleted.", g.Name)
		}
	}
	r.PlacementGroups.Remove(g.ID)
	rq.XML.Boolean("return", true)
	return nil
}

type seedPlacementGroup struct {
	ID         string `json:"id"` // "": generated
	Name       string `json:"name"`
	Strategy   string `json:"strategy"` // "": cluster
	Partitions *int64 `json:"partitions"`
}

func (r seeder) applyPlacementGroup(s seedPlacementGroup) error {
	if r.placementGroup(s.Name, "") != nil {
		return nil
	}
	in := createPlacementGroupInput{GroupName: s.Name, Strategy: s.Strategy, PartitionCount: s.Partitions}
	if err := in.Check(); err != nil {
		return err
	}
	if !slices.Contains([]string{"cluster", "spread", "partition"}, in.Strategy) {
		return errors.New("its strategy must be cluster, spread or partition")
	}
	r.addPlacementGroup(cmp.Or(s.ID, r.SeedID("pg", s.Name)), in)
	return nil
}
