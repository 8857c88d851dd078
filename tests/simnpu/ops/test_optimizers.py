"""Optimizers on the simulated NPU: whichever way a step is computed, ten of them end where they end on the CPU."""

from __future__ import annotations

from isolated import on_simulator


@on_simulator(torch=True)
def test_every_way_to_compute_a_step_equals_the_cpu():
    import warnings

    import torch
    from torch import optim

    from simnpu import calls

    warnings.filterwarnings("ignore", message=".*fused.*")
    batches = [torch.randn(5, 6, generator=torch.Generator().manual_seed(seed)) for seed in range(10)]

    def trained(device: str, kind: type[optim.Optimizer], settings: dict) -> list[torch.Tensor]:
        """Parameters and the optimizer's state after ten steps."""
        torch.manual_seed(0)
        layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
        network = torch.nn.Sequential(*layers).to(device)
        optimizer = kind(network.parameters(), **settings)
        for batch in batches:
            optimizer.zero_grad()
            network(batch.to(device)).sin().mean().backward()
            optimizer.step()
        held = [value for state in optimizer.state.values() for _, value in sorted(state.items())]
        return [tensor.detach().cpu() for tensor in [*network.parameters(), *held] if isinstance(tensor, torch.Tensor)]

    sgd = [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}]
    sgd += [{"momentum": 0.9, "dampening": 0.3, "maximize": True}]
    adam = [{}, {"amsgrad": True}, {"weight_decay": 0.1}, {"amsgrad": True, "weight_decay": 0.05, "maximize": True}]
    plans = [(optim.SGD, settings) for settings in sgd]
    plans += [(kind, settings) for kind in (optim.Adam, optim.AdamW) for settings in adam]
    ways: list[dict[str, bool]] = [{"foreach": False}, {"foreach": True}, {"fused": True}]
    runs = [(kind, settings | way) for kind, settings in plans for way in ways]
    others = (optim.Adagrad, optim.Adadelta, optim.Adamax, optim.NAdam, optim.RAdam, optim.RMSprop, optim.ASGD)
    runs += [(kind, way) for kind in others for way in ways[:2]]
    runs += [(optim.SGD, {"foreach": way}) for way in (False, True)]  # torch_npu's fused SGD wants a momentum
    assert len(runs) == 11 * 3 + 7 * 2 + 2
    for kind, chosen in runs:
        settings = {"lr": 0.02} | chosen
        expected, found = trained("cpu", kind, settings), trained("npu", kind, settings)
        for actual, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(
                actual, wanted, rtol=1e-4, atol=1e-6, msg=lambda m, k=kind, s=settings: f"{k.__name__} {s}: {m}"
            )
    for name in ("FusedSgd", "ApplyAdamWV2", "ForeachAddcdivScalarV2", "ForeachLerpScalar"):
        assert calls.counts()[f"aclnn{name}"] > 0, name


@on_simulator(torch=True)
def test_a_fused_step_takes_its_rate_from_a_tensor_too():
    import torch

    ends = []
    for device in ("cpu", "npu"):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, 5).to(device))
        rate = torch.tensor(0.1, device=device)
        optimizer = torch.optim.SGD([parameter], lr=rate, momentum=0.9, fused=True)
        for _ in range(4):
            optimizer.zero_grad()
            (parameter * parameter).sum().backward()
            optimizer.step()
            rate.mul_(0.5)
        ends.append(parameter.detach().cpu())
    torch.testing.assert_close(*ends)


@on_simulator(torch=True)
def test_the_wheels_own_fused_optimizers_equal_those_of_torch():
    import torch
    import torch_npu.optim as fused
    from torch import optim

    batches = [torch.randn(5, 6, generator=torch.Generator().manual_seed(seed)) for seed in range(10)]

    def trained(device: str, kind: type[optim.Optimizer], settings: dict) -> list[torch.Tensor]:
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(device)
        optimizer = kind(network.parameters(), **settings)
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            loss = network(batch.to(device)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu())
        assert losses[-1] < losses[0], kind
        return [*losses, *(parameter.detach().cpu() for parameter in network.parameters())]

    same = {
        (fused.NpuFusedSGD, optim.SGD): {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
        (fused.NpuFusedAdam, optim.Adam): {"lr": 0.02},
        (fused.NpuFusedAdamW, optim.AdamW): {"lr": 0.02, "weight_decay": 0.1},
        (fused.NpuFusedAdadelta, optim.Adadelta): {"lr": 1.0},
        (fused.NpuFusedRMSprop, optim.RMSprop): {"lr": 0.01, "momentum": 0.5},
    }
    for (ours, theirs), settings in same.items():
        found, expected = trained("npu", ours, settings), trained("cpu", theirs, settings)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6, msg=lambda m, k=ours: f"{k.__name__}: {m}")
    for alone in (fused.NpuFusedLamb, fused.NpuFusedAdamP, fused.NpuFusedBertAdam, fused.NpuFusedRMSpropTF):
        trained("npu", alone, {"lr": 0.01})  # torch has none to compare with: it learns


@on_simulator(torch=True)
def test_unscaling_and_clipping_of_scaled_gradients():
    import torch

    scaler = torch.amp.GradScaler("npu", init_scale=4.0, growth_interval=1)
    parameter = torch.nn.Parameter(torch.ones(3, device="npu"))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler.scale((parameter * 2).sum()).backward()
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [8.0] * 3
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [2.0] * 3
    norm = torch.nn.utils.clip_grad_norm_([parameter], 1.0)
    torch.testing.assert_close(norm.item(), 12**0.5)
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(parameter.detach().cpu(), torch.full((3,), 1 - 3**-0.5))
    assert scaler.get_scale() == 8.0
    optimizer.zero_grad()
    before = parameter.detach().clone()
    scaler.scale((parameter * float("nan")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(parameter, before), "a step on numbers that are none"
    assert scaler.get_scale() == 4.0
    restored = torch.amp.GradScaler("npu")
    restored.load_state_dict(scaler.state_dict())
    assert restored.get_scale() == 4.0
