package ec2

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// FuzzCheckTemplateData: no body stops the check.
func FuzzCheckTemplateData(f *testing.F) {
	f.Add("BlockDeviceMapping.1.Ebs.VolumeSize=20&BlockDeviceMapping.1.Ebs.Iops=1")
	f.Add("UserData=&TagSpecification.1.Tag.1.Key=a&.=1&..a=")
	f.Add("InstanceRequirements.VCpuCount.Min=9999999999999999999&InstanceMarketOptions.SpotOptions.MaxPrice=NaN")
	f.Fuzz(func(_ *testing.T, body string) {
		form, _, err := model.ParseForm(body)
		if err != nil {
			return
		}
		sv := model.Services()["ec2"]
		v, _ := sv.Decode(form, sv.Shapes["RequestLaunchTemplateData"])
		if data, ok := v.(map[string]any); ok {
			_ = checkTemplateData(data)
		}
	})
}
