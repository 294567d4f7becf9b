package probe

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

// TestPlacementGroupsAreReadByNameAndID: DescribePlacementGroups has no filter for ids, and a
// list with an id that does not exist fails as a whole.
func TestPlacementGroupsAreReadByNameAndID(t *testing.T) {
	there := map[string]string{"pg-1": "tight", "pg-2": "wide", "pg-3": "parts"}
	calls := 0
	p := &Prober{ec2: EC2Calls{DescribePlacementGroups: func(_ context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
		calls++
		out := &ec2.DescribePlacementGroupsOutput{}
		for _, f := range in.Filters {
			if name := aws.ToString(f.Name); name != "group-name" {
				return nil, &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "The filter '" + name + "' is invalid"}
			}
		}
		for _, id := range in.GroupIds {
			if there[id] == "" {
				return nil, &smithy.GenericAPIError{Code: "InvalidPlacementGroup.Unknown", Message: "The placement group ID '" + id + "' is unknown."}
			}
		}
		for id, name := range there {
			if slices.Contains(in.GroupIds, id) || len(in.Filters) > 0 && slices.Contains(in.Filters[0].Values, name) {
				out.PlacementGroups = append(out.PlacementGroups, types.PlacementGroup{GroupId: &id, GroupName: &name, Strategy: "spread"})
			}
		}
		return out, nil
	}}}
	found, err := p.PlacementGroups(t.Context(), []string{"tight", "none", "pg-1", "pg-9", "pg-2", "pg-8"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"pg-1", "pg-2", "tight"}) {
		t.Errorf("found %v", names)
	}
	if calls > 8 {
		t.Errorf("%d calls", calls)
	}
	calls = 0
	if found, err := p.PlacementGroups(t.Context(), []string{"pg-1", "pg-3"}); err != nil || len(found) != 2 || calls != 1 {
		t.Errorf("%v, %v, %d calls", found, err, calls)
	}
}
