package main

import (
	"time"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	noon  = meta.NewTime(time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC))
	micro = meta.NewMicroTime(time.Date(2026, 2, 3, 12, 0, 0, 12345678, time.UTC))
)

func samples() map[string]runtime.Object {
	return map[string]runtime.Object{
		"pod":                pod(),
		"pod_empty":          &core.Pod{},
		"deployment":         deployment(),
		"service":            service(),
		"node":               node(),
		"lease":              lease(),
		"event":              coreEvent(),
		"events_event":       event(),
		"csr":                signingRequest(),
		"crd":                definition(),
		"endpoint_slice":     endpointSlice(),
		"secret":             secret(),
		"config_map":         configMap(),
		"network_policy":     networkPolicy(),
		"autoscaler":         autoscaler(),
		"disruption_budget":  disruptionBudget(),
		"cron_job":           cronJob(),
		"cluster_role":       clusterRole(),
		"cluster_role_empty": &rbac.ClusterRole{ObjectMeta: named("", "nothing")},
		"revision":           revision(),
		"list":               list(),
		"scale":              scale(),
		"eviction":           eviction(),
		"token_request":      tokenRequest(),
		"self_access_review": selfAccessReview(),
		"access_review":      accessReview(),
		"self_review":        &authentication.SelfSubjectReview{},
		"delete_options":     deleteOptions(),
	}
}

func ptr[T any](value T) *T { return &value }

func quantities(pairs ...string) core.ResourceList {
	list := core.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[core.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func named(namespace, name string) meta.ObjectMeta {
	return meta.ObjectMeta{Namespace: namespace, Name: name}
}

func full(namespace, name string) meta.ObjectMeta {
	return meta.ObjectMeta{
		Name: name, Namespace: namespace, GenerateName: "gen-", UID: "7a1c", ResourceVersion: "12",
		Generation: 3, CreationTimestamp: noon, DeletionTimestamp: &noon,
		DeletionGracePeriodSeconds: ptr(int64(0)),
		Labels:                     map[string]string{"b": "2", "a": "1", "": "", "é": "ü"},
		Annotations:                map[string]string{"text": "a \"b\"\\\n\t<c> & \x01 ☃ 𝄞"},
		OwnerReferences: []meta.OwnerReference{{
			APIVersion: "v1", Kind: "X", Name: "x", UID: "u", Controller: ptr(false)}},
		Finalizers: []string{"example.com/f", ""},
		ManagedFields: []meta.ManagedFieldsEntry{{
			Manager: "m", Operation: "Update", APIVersion: "v1", Time: &noon,
			FieldsType: "FieldsV1", FieldsV1: &meta.FieldsV1{Raw: []byte(` {"f:a" : {} } `)}}},
	}
}

func pod() *core.Pod {
	return &core.Pod{
		ObjectMeta: full("shop", "web-0"),
		Spec: core.PodSpec{
			Volumes: []core.Volume{
				{Name: "c", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{
					LocalObjectReference: core.LocalObjectReference{Name: "cm"},
					Items:                []core.KeyToPath{{Key: "k", Path: "p", Mode: ptr(int32(0o644))}},
					Optional:             ptr(false)}}},
				{Name: "e", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{
					SizeLimit: ptr(resource.MustParse("1.5Gi"))}}},
				{Name: "t", VolumeSource: core.VolumeSource{Projected: &core.ProjectedVolumeSource{
					Sources: []core.VolumeProjection{{
						ServiceAccountToken: &core.ServiceAccountTokenProjection{
							ExpirationSeconds: ptr(int64(3607)), Path: "token"}}}}}},
			},
			InitContainers: []core.Container{{Name: "init",
				RestartPolicy: ptr(core.ContainerRestartPolicyAlways)}},
			Containers: []core.Container{{
				Name: "web", Image: "web:1", Command: []string{"/web"}, Args: []string{"-v", ""},
				Ports: []core.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: "TCP"}},
				EnvFrom: []core.EnvFromSource{{ConfigMapRef: &core.ConfigMapEnvSource{
					LocalObjectReference: core.LocalObjectReference{Name: "env"}}}},
				Env: []core.EnvVar{
					{Name: "A", Value: "1"}, {Name: "B"},
					{Name: "C", ValueFrom: &core.EnvVarSource{ResourceFieldRef: &core.ResourceFieldSelector{
						Resource: "limits.cpu", Divisor: resource.MustParse("1m")}}},
					{Name: "D", ValueFrom: &core.EnvVarSource{ResourceFieldRef: &core.ResourceFieldSelector{
						Resource: "limits.cpu"}}}},
				Resources: core.ResourceRequirements{
					Limits: quantities("memory", "128974848", "cpu", "0.5",
						"ephemeral-storage", "1e3", "tiny", "100n", "large", "12E", "none", "0"),
					Requests: quantities("memory", "1.5Gi", "cpu", "-1500m")},
				VolumeMounts: []core.VolumeMount{{Name: "c", ReadOnly: true, MountPath: "/c"}},
				LivenessProbe: &core.Probe{
					ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{
						Path: "/", Port: intstr.FromString("http"), Scheme: "HTTP"}},
					InitialDelaySeconds: 1, TerminationGracePeriodSeconds: ptr(int64(0))},
				ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{
					TCPSocket: &core.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
				StartupProbe: &core.Probe{ProbeHandler: core.ProbeHandler{Exec: &core.ExecAction{}}},
				SecurityContext: &core.SecurityContext{
					Privileged: ptr(false), RunAsUser: ptr(int64(-1)),
					Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}},
			}},
			EphemeralContainers: []core.EphemeralContainer{{
				EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "debug", Image: "sh"},
				TargetContainerName:      "web"}},
			TerminationGracePeriodSeconds: ptr(int64(30)),
			NodeSelector:                  map[string]string{"disk": "ssd"},
			NodeName:                      "n1", HostNetwork: true,
			ShareProcessNamespace: ptr(false),
			SecurityContext:       &core.PodSecurityContext{SupplementalGroups: []int64{1, -2, 1 << 40}},
			Affinity: &core.Affinity{NodeAffinity: &core.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []core.PreferredSchedulingTerm{{
					Weight: 1, Preference: core.NodeSelectorTerm{}}}}},
			Tolerations: []core.Toleration{{Operator: "Exists", TolerationSeconds: ptr(int64(0))}},
			Priority:    ptr(int32(-5)),
			Overhead:    quantities("cpu", "10m"),
		},
		Status: core.PodStatus{
			Phase:      core.PodRunning,
			Conditions: []core.PodCondition{{Type: "Ready", Status: "True"}},
			PodIPs:     []core.PodIP{{IP: "10.0.0.1"}, {}},
			StartTime:  &noon,
			ContainerStatuses: []core.ContainerStatus{{
				Name: "web", State: core.ContainerState{Terminated: &core.ContainerStateTerminated{
					ExitCode: -1, StartedAt: noon}}, Started: ptr(false)}},
			ObservedGeneration: 2,
		},
	}
}

func deployment() *apps.Deployment {
	return &apps.Deployment{
		ObjectMeta: named("shop", "web"),
		Spec: apps.DeploymentSpec{
			Replicas: ptr(int32(0)),
			Selector: &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{{
				Key: "app", Operator: "In", Values: []string{"web"}}}},
			Template: core.PodTemplateSpec{Spec: core.PodSpec{}},
			Strategy: apps.DeploymentStrategy{RollingUpdate: &apps.RollingUpdateDeployment{
				MaxSurge: ptr(intstr.FromString("25%")), MaxUnavailable: ptr(intstr.FromInt32(0))}},
		},
	}
}

func service() *core.Service {
	return &core.Service{
		ObjectMeta: named("shop", "web"),
		Spec: core.ServiceSpec{
			Ports: []core.ServicePort{
				{Port: 80, TargetPort: intstr.FromString("http"), AppProtocol: ptr("")}, {Port: 81}},
			ClusterIP: "None", ClusterIPs: []string{"None"},
			IPFamilies:                    []core.IPFamily{"IPv4"},
			IPFamilyPolicy:                ptr(core.IPFamilyPolicySingleStack),
			AllocateLoadBalancerNodePorts: ptr(false),
			SessionAffinityConfig: &core.SessionAffinityConfig{
				ClientIP: &core.ClientIPConfig{TimeoutSeconds: ptr(int32(10800))}},
		},
	}
}

func node() *core.Node {
	return &core.Node{
		ObjectMeta: named("", "n1"),
		Spec: core.NodeSpec{PodCIDRs: []string{"10.1.0.0/24"},
			Taints: []core.Taint{{Key: "k", Effect: "NoExecute", TimeAdded: &noon}}},
		Status: core.NodeStatus{
			Capacity:    quantities("cpu", "4", "memory", "16301232Ki", "pods", "110"),
			Allocatable: quantities("cpu", "3920m", "ephemeral-storage", "95491281146"),
			Conditions: []core.NodeCondition{{Type: "Ready", Status: "True",
				LastHeartbeatTime: noon}},
			DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: 10250}},
			Images:          []core.ContainerImage{{Names: []string{"a"}, SizeBytes: 1 << 33}, {}},
		},
	}
}

func lease() *coordination.Lease {
	return &coordination.Lease{
		ObjectMeta: named("kube-node-lease", "n1"),
		Spec: coordination.LeaseSpec{
			HolderIdentity: ptr("n1"), LeaseDurationSeconds: ptr(int32(40)), RenewTime: &micro,
			AcquireTime: &meta.MicroTime{}, LeaseTransitions: ptr(int32(0))},
	}
}

func coreEvent() *core.Event {
	return &core.Event{
		ObjectMeta:     named("shop", "web-0.1"),
		InvolvedObject: core.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0"},
		Reason:         "Started", Message: "Started container", Type: "Normal",
		Source:         core.EventSource{Component: "kubelet", Host: "n1"},
		FirstTimestamp: noon, Count: 2,
		Series: &core.EventSeries{Count: 3, LastObservedTime: micro},
	}
}

func event() *events.Event {
	return &events.Event{
		ObjectMeta: named("shop", "web-0.2"), EventTime: micro, ReportingController: "c",
		Regarding: core.ObjectReference{Kind: "Pod"}, Note: "note", Type: "Warning",
		Series: &events.EventSeries{Count: 1},
	}
}

func signingRequest() *certificates.CertificateSigningRequest {
	return &certificates.CertificateSigningRequest{
		ObjectMeta: meta.ObjectMeta{GenerateName: "csr-"},
		Spec: certificates.CertificateSigningRequestSpec{
			Request: []byte("-----BEGIN"), SignerName: "kubernetes.io/kubelet-serving",
			ExpirationSeconds: ptr(int32(3600)),
			Usages:            []certificates.KeyUsage{"digital signature", "server auth"},
			Extra: map[string]certificates.ExtraValue{
				"b": {"1", ""}, "a": {"x"}, "none": nil}},
	}
}

func definition() *apiextensions.CustomResourceDefinition {
	text := apiextensions.JSONSchemaProps{Type: "string", MinLength: ptr(int64(0)),
		Default: &apiextensions.JSON{Raw: []byte(`"a"`)}, Format: "date"}
	props := &apiextensions.JSONSchemaProps{
		Type: "object", Required: []string{"spec"}, Description: "d",
		Properties: map[string]apiextensions.JSONSchemaProps{
			"spec": {
				Type: "object", XPreserveUnknownFields: ptr(true),
				AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true},
				XValidations: apiextensions.ValidationRules{{Rule: "true",
					Reason: ptr(apiextensions.FieldValueInvalid), OptionalOldSelf: ptr(true)}},
			},
			"map": {Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{
				Allows: true, Schema: &text}},
			"closed": {AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{}},
			"list": {Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &text},
				XListType: ptr("map"), XListMapKeys: []string{"k"}},
			"lists": {Items: &apiextensions.JSONSchemaPropsOrArray{
				JSONSchemas: []apiextensions.JSONSchemaProps{text, {}}}},
			"no_items": {Items: &apiextensions.JSONSchemaPropsOrArray{}},
			"number": {Type: "number", Minimum: ptr(-1.5), Maximum: ptr(1e21), MultipleOf: ptr(1e-7),
				ExclusiveMaximum: true,
				Enum: []apiextensions.JSON{{Raw: []byte("1.0")}, {Raw: []byte("null")},
					{Raw: []byte(`{ "a": [ 1, "b c" ] }`)}, {}}},
			"port": {XIntOrString: true, AnyOf: []apiextensions.JSONSchemaProps{{Type: "integer"}, {}}},
			"other": {Ref: ptr("#/x"), Schema: "http://json-schema.org/schema#", Nullable: true,
				Not: &apiextensions.JSONSchemaProps{Pattern: "^<a>&$"},
				Dependencies: apiextensions.JSONSchemaDependencies{
					"a": {Property: []string{"b"}}, "b": {Schema: &text}, "c": {}}},
		},
	}
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: named("", "things.example.com"),
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, DeprecationWarning: ptr(""),
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: props},
				Subresources: &apiextensions.CustomResourceSubresources{
					Status: &apiextensions.CustomResourceSubresourceStatus{},
					Scale: &apiextensions.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.replicas", LabelSelectorPath: ptr(".x")}},
				AdditionalPrinterColumns: []apiextensions.CustomResourceColumnDefinition{{
					Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}},
			}},
			Conversion: &apiextensions.CustomResourceConversion{
				Strategy: apiextensions.WebhookConverter,
				Webhook: &apiextensions.WebhookConversion{ClientConfig: &apiextensions.WebhookClientConfig{
					CABundle: []byte{0, 1, 254, 255}}}},
		},
	}
}

func endpointSlice() *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		ObjectMeta: named("shop", "web-1"), AddressType: discovery.AddressTypeIPv4,
		Endpoints: []discovery.Endpoint{
			{Addresses: []string{"10.0.0.1"}, NodeName: ptr("n1"),
				Conditions: discovery.EndpointConditions{Ready: ptr(true), Terminating: ptr(false)},
				Hints:      &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: "z"}}}},
			{}},
		Ports: []discovery.EndpointPort{{Name: ptr(""), Port: ptr(int32(80))}, {}},
	}
}

func secret() *core.Secret {
	return &core.Secret{
		ObjectMeta: named("shop", "s"), Immutable: ptr(false), Type: "Opaque",
		Data:       map[string][]byte{"b": {0xff, 0}, "empty": {}, "none": nil, "a": []byte("text")},
		StringData: map[string]string{"c": "plain"},
	}
}

func configMap() *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: named("shop", "c"),
		Data:       map[string]string{"z": "", "a": "line\r\nline\b\f\x7f"},
		BinaryData: map[string][]byte{"b": {1, 2, 3, 4}},
	}
}

func networkPolicy() *networking.NetworkPolicy {
	return &networking.NetworkPolicy{
		ObjectMeta: named("shop", "web"),
		Spec: networking.NetworkPolicySpec{
			Ingress: []networking.NetworkPolicyIngressRule{{
				Ports: []networking.NetworkPolicyPort{
					{Port: ptr(intstr.FromInt32(80)), EndPort: ptr(int32(90))},
					{Port: ptr(intstr.FromString("http")), Protocol: ptr(core.ProtocolUDP)}, {}},
				From: []networking.NetworkPolicyPeer{
					{PodSelector: &meta.LabelSelector{}},
					{IPBlock: &networking.IPBlock{CIDR: "10.0.0.0/8"}}}}, {}},
			PolicyTypes: []networking.PolicyType{"Ingress"},
		},
	}
}

func autoscaler() *autoscaling.HorizontalPodAutoscaler {
	return &autoscaling.HorizontalPodAutoscaler{
		ObjectMeta: named("shop", "web"),
		Spec: autoscaling.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscaling.CrossVersionObjectReference{Kind: "Deployment", Name: "web"},
			MinReplicas:    ptr(int32(0)), MaxReplicas: 10,
			Metrics: []autoscaling.MetricSpec{
				{Type: "Resource", Resource: &autoscaling.ResourceMetricSource{Name: "cpu",
					Target: autoscaling.MetricTarget{Type: "Utilization",
						AverageUtilization: ptr(int32(80))}}},
				{Type: "Pods", Pods: &autoscaling.PodsMetricSource{Target: autoscaling.MetricTarget{
					Type: "AverageValue", AverageValue: ptr(resource.MustParse("1k"))}}}},
			Behavior: &autoscaling.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscaling.HPAScalingRules{
					StabilizationWindowSeconds: ptr(int32(0)),
					Tolerance:                  ptr(resource.MustParse("0.05"))}},
		},
	}
}

func disruptionBudget() *policy.PodDisruptionBudget {
	return &policy.PodDisruptionBudget{
		ObjectMeta: named("shop", "web"),
		Spec:       policy.PodDisruptionBudgetSpec{MinAvailable: ptr(intstr.FromString("50%"))},
		Status: policy.PodDisruptionBudgetStatus{
			DisruptedPods: map[string]meta.Time{"web-1": noon, "web-0": {}}},
	}
}

func cronJob() *batch.CronJob {
	return &batch.CronJob{
		ObjectMeta: named("shop", "nightly"),
		Spec: batch.CronJobSpec{
			Schedule: "0 3 * * *", TimeZone: ptr("Etc/UTC"), Suspend: ptr(false),
			JobTemplate: batch.JobTemplateSpec{Spec: batch.JobSpec{
				BackoffLimit: ptr(int32(0)),
				PodFailurePolicy: &batch.PodFailurePolicy{Rules: []batch.PodFailurePolicyRule{{
					Action: "Ignore", OnExitCodes: &batch.PodFailurePolicyOnExitCodesRequirement{
						Operator: "In", Values: []int32{1, -1, 137}}}}}}}},
	}
}

func clusterRole() *rbac.ClusterRole {
	return &rbac.ClusterRole{
		ObjectMeta: named("", "reader"),
		Rules:      []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}}, {}},
		AggregationRule: &rbac.AggregationRule{ClusterRoleSelectors: []meta.LabelSelector{{
			MatchLabels: map[string]string{"a": "b"}}}},
	}
}

func revision() *apps.ControllerRevision {
	return &apps.ControllerRevision{
		ObjectMeta: named("shop", "web-1"), Revision: -7,
		Data: runtime.RawExtension{Raw: []byte("{ \"spec\" : {\"a b\" : [ 1.0, \"c \\\" d\" ] } }\n")},
	}
}

func list() *core.List {
	return &core.List{Items: []runtime.RawExtension{
		{Raw: []byte(`{"apiVersion":"v1","kind":"Pod"}`)}, {}}}
}

func scale() *autoscaling1.Scale {
	return &autoscaling1.Scale{ObjectMeta: named("shop", "web"),
		Spec: autoscaling1.ScaleSpec{Replicas: 3}}
}

func eviction() *policy.Eviction {
	return &policy.Eviction{ObjectMeta: named("shop", "web-0"),
		DeleteOptions: &meta.DeleteOptions{GracePeriodSeconds: ptr(int64(0)), DryRun: []string{"All"}}}
}

func tokenRequest() *authentication.TokenRequest {
	return &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		Audiences: []string{"api"}, ExpirationSeconds: ptr(int64(600)),
		BoundObjectRef: &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", UID: "u"}}}
}

func selfAccessReview() *authorization.SelfSubjectAccessReview {
	return &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Verb: "create", Resource: "pods"}}}
}

func accessReview() *authorization.SubjectAccessReview {
	return &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: "ann", Groups: []string{"g"},
		Extra:                 map[string]authorization.ExtraValue{"k": {"v"}},
		NonResourceAttributes: &authorization.NonResourceAttributes{Path: "/x", Verb: "get"}}}
}

func deleteOptions() *meta.DeleteOptions {
	options := &meta.DeleteOptions{
		GracePeriodSeconds: ptr(int64(0)),
		Preconditions:      &meta.Preconditions{UID: ptr(types.UID("7a1c")), ResourceVersion: ptr("12")},
		PropagationPolicy:  ptr(meta.DeletePropagationForeground),
	}
	options.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeleteOptions"})
	return options
}
