package awsemu_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/document"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestDataRoundTrip sends every member of the request's type and wants every one
// back under the same name.
func TestDataRoundTrip(t *testing.T) {
	e := start(t, awsemu.Options{})
	data := &types.RequestLaunchTemplateData{}
	fillStruct(reflect.ValueOf(data).Elem(), "")
	// Members that exclude each other go into two templates.
	second := *data
	data.InstanceRequirements, data.SecurityGroupIds, data.SecurityGroups = nil, nil, nil
	second.InstanceType, second.NetworkInterfaces = "", nil

	for i, want := range []*types.RequestLaunchTemplateData{data, &second} {
		created, err := e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String(fmt.Sprintf("full-%d", i)), LaunchTemplateData: want,
		})
		if err != nil {
			t.Fatal(err)
		}
		out := must(e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateId: created.LaunchTemplate.LaunchTemplateId,
		}))(t)
		got := out.LaunchTemplateVersions[0].LaunchTemplateData
		if diff := cmp.Diff(flatten(reflect.ValueOf(want)), flatten(reflect.ValueOf(got))); diff != "" {
			t.Errorf("template %d (-sent +read back):\n%s", i, diff)
		}
	}
}

// flatten lists all scalars of a structure by the path of their member names.
func flatten(v reflect.Value) map[string]string {
	out := map[string]string{}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Struct:
			if tm, ok := v.Interface().(time.Time); ok {
				out[path] = tm.UTC().Format(time.RFC3339)
				return
			}
			for i := 0; i < v.NumField(); i++ {
				if v.Type().Field(i).IsExported() {
					walk(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
		case reflect.Slice:
			for i := 0; i < v.Len(); i++ {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		default:
			if text := fmt.Sprint(v.Interface()); text != "" {
				out[path] = text
			}
		}
	}
	walk("", v)
	return out
}

// fillStruct gives every member a value that EC2's rules accept.
func fillStruct(v reflect.Value, path string) {
	special := map[string]string{
		"ImageId": "ami-0123456789abcdef0", "UserData": base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")),
		"SecurityGroupIds": "sg-0123456789abcdef0", "Groups": "sg-0123456789abcdef0", "SubnetId": "subnet-0123456789abcdef0",
		"SnapshotId": "snap-0123456789abcdef0", "CpuCredits": "unlimited", "MaxPrice": "0.25", "VolumeType": "gp3",
		"ResourceType": "volume", "MarketType": "spot", "SpotInstanceType": "persistent", "InstanceType": "m5.large",
	}
	omit := map[string]bool{
		".IamInstanceProfile.Name": true, ".BlockDeviceMappings.NoDevice": true, ".BlockDeviceMappings.VirtualName": true,
		".InstanceRequirements.ExcludedInstanceTypes": true, ".HibernationOptions.Configured": true,
		".CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn": true,
	}
	numbers := map[string]int64{"VolumeSize": 100, "Iops": 4000, "Throughput": 250, "BlockDurationMinutes": 60}
	for i := 0; i < v.NumField(); i++ {
		f, ft := v.Field(i), v.Type().Field(i)
		name := path + "." + ft.Name
		if !ft.IsExported() || omit[name] || ft.Type == reflect.TypeOf(document.NoSerde{}) {
			continue
		}
		fillValue(f, ft.Name, name, special, numbers)
	}
}

func fillValue(f reflect.Value, name, path string, special map[string]string, numbers map[string]int64) {
	switch f.Kind() {
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		fillValue(f.Elem(), name, path, special, numbers)
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		fillValue(f.Index(0), name, path, special, numbers)
	case reflect.Struct:
		if f.Type() == reflect.TypeOf(time.Time{}) {
			f.Set(reflect.ValueOf(epoch))
			return
		}
		fillStruct(f, path)
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Int32, reflect.Int64:
		n := int64(3)
		if numbers[name] != 0 {
			n = numbers[name]
		}
		f.SetInt(n)
	case reflect.Float64:
		f.SetFloat(1.5)
	case reflect.String:
		f.SetString(enumValue(f, name, special))
	}
}

// enumValue is the first value of an enumeration, or a text.
func enumValue(f reflect.Value, name string, special map[string]string) string {
	if s, ok := special[name]; ok {
		return s
	}
	if values := f.MethodByName("Values"); values.IsValid() {
		return values.Call(nil)[0].Index(0).String()
	}
	return "text & <more>"
}
