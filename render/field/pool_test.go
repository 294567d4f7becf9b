package field_test

import (
	"testing"

	"github.com/weir-gitops/weir/render/field"
)

func TestWhatThePoolSetsOfAWS(t *testing.T) {
	for _, tc := range []struct {
		of            field.Kind
		member, field string
	}{
		{field.Template, "imageId", "awsLaunchTemplate.ami.id"},
		{field.Template, "metadataOptions", "awsLaunchTemplate.instanceMetadataOptions"}, // what its rows have in common
		{field.Template, "iamInstanceProfile", "awsLaunchTemplate.iamInstanceProfile"},
		{field.Template, "instanceMarketOptions", "awsLaunchTemplate.spotMarketOptions"},
		{field.Template, "tagSpecifications", "additionalTags"},
		{field.Template, "capacityReservationSpecification.capacityReservationTarget.capacityReservationId", "awsLaunchTemplate.capacityReservationId"},
		{field.Template, "capacityReservationSpecification.capacityReservationTarget.capacityReservationResourceGroupArn", ""},
		{field.Template, "userData", ""}, // neither sets it
		{field.Template, "image", ""},    // no member, though the beginning of one
		{field.Group, "defaultCooldown", "defaultCoolDown"},
		{field.Group, "vpcZoneIdentifier", "subnets"},
		{field.Group, "healthCheckType", ""},
		{field.Refresh, "instanceWarmup", "refreshPreferences.instanceWarmup"},
		{field.Refresh, "bakeTime", ""},
		{field.Nodegroup, "taints", "taints"},
		{field.Nodegroup, "releaseVersion", "amiVersion"},
		{field.Nodegroup, "updateConfig.maxUnavailablePercentage", "updateConfig.maxUnavailablePercentage"},
		{field.Nodegroup, "nodeRepairConfig.enabled", "nodeRepairConfig.enabled"},
		{field.Nodegroup, "version", ""},
	} {
		at, ok := field.InPool(tc.of, tc.member)
		if at.String() != tc.field || ok != (tc.field != "") {
			t.Errorf("%s %s: %s, %v", tc.of, tc.member, at, ok)
		}
	}
}
