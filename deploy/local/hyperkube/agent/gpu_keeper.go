package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const gpuResource = "nvidia.com/gpu"

// gpuKeeper restores each node's GPU count whenever somebody changed it.
type gpuKeeper struct {
	client kubernetes.Interface
	nodes  listers.NodeLister
	synced cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[string]
	count  int64
}

func newGPUKeeper(client kubernetes.Interface, shared informers.SharedInformerFactory, count int64) *gpuKeeper {
	informer := shared.Core().V1().Nodes()
	k := &gpuKeeper{
		client: client,
		nodes:  informer.Lister(),
		synced: informer.Informer().HasSynced,
		queue:  newQueue(),
		count:  count,
	}
	addHandler(informer.Informer(), k.queue)
	return k
}

func (k *gpuKeeper) run(ctx context.Context) {
	if cache.WaitForCacheSync(ctx.Done(), k.synced) {
		runQueue(ctx, k.queue, k.sync)
	}
}

func (k *gpuKeeper) sync(ctx context.Context, name string) error {
	node, err := k.nodes.Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	patch, err := gpuPatch(node, k.count)
	if err != nil || patch == nil {
		return err
	}
	klog.Infof("node %s: setting %s to %d", name, gpuResource, k.count)
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// gpuPatch returns nil if the node already shows the count. Capacity alone would do, because the
// kubelet copies it, but only at its next report: until then a pod would stay Pending.
func gpuPatch(node *corev1.Node, count int64) ([]byte, error) {
	want := *resource.NewQuantity(count, resource.DecimalSI)
	has, hasCapacity := node.Status.Capacity[gpuResource]
	free, hasAllocatable := node.Status.Allocatable[gpuResource]
	if hasCapacity && hasAllocatable && has.Cmp(want) == 0 && free.Cmp(want) == 0 {
		return nil, nil
	}
	amount := map[string]string{gpuResource: strconv.FormatInt(count, 10)}
	return json.Marshal(map[string]any{"status": map[string]any{"capacity": amount, "allocatable": amount}})
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 30*time.Second))
}

func addHandler(informer cache.SharedIndexInformer, queue workqueue.TypedRateLimitingInterface[string]) {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
		DeleteFunc: add,
	})
	if err != nil { // only an informer that has ended refuses a handler, and ours have not begun
		panic(err)
	}
}

// runQueue handles one key at a time until ctx ends; a failed key comes back later.
func runQueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) error) {
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := sync(ctx, key); err != nil {
			klog.Errorf("%s: %v", key, err)
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}
