"""Extras are judged by the distribution's own metadata."""

from importlib.metadata import version

from builder.pipeline.doctor.extras import install_command, judge, read_extras

HERE = f'click=={version("click")}; extra == "a"'


def test_an_extra_that_is_whole() -> None:
    extra = judge("thing", "a", [HERE, 'no-such-package; extra == "b"', "no-such-package"])
    assert (extra.ready, extra.missing, extra.others, extra.fix) == (True, (), (), "")


def test_an_extra_that_lacks_a_package() -> None:
    extra = judge("thing", "a", [HERE, "no-such-package[x]==1.0; python_version > '3' and extra == 'a'"])
    assert (extra.ready, extra.missing, extra.fix) == (False, ("no-such-package",), "pip install 'thing[a]'")
    assert extra.as_dict()["missing"] == ["no-such-package"]


def test_another_version_than_the_pinned_one_is_said() -> None:
    extra = judge("thing", "a", ['click==0.1; extra == "a"'])
    assert (extra.ready, extra.others) == (True, (f"click {version('click')} (pinned: 0.1)",))


def test_a_build_of_the_pinned_version_is_that_version() -> None:
    plain = version("torch").split("+")[0]
    assert not judge("thing", "a", [f'torch=={plain}; extra == "a"']).others


def test_an_extra_that_others_refuse_has_a_command_of_its_own() -> None:
    """By name it would bring a numpy that the server's packages refuse."""
    extra = judge("trt-tandem", "speed", ['no-such-package==0.12.0; extra == "speed"'])
    assert extra.fix == "pip install --no-deps aiconfigurator-core==0.12.0 packaging"
    assert judge("trt-tandem", "plot", ['no-such-package; extra == "plot"']).fix == "pip install 'trt-tandem[plot]'"


def test_this_distribution() -> None:
    names = [extra.name for extra in read_extras()]
    assert {"openvino", "serve"} <= set(names)
    assert "dev" not in names
    assert read_extras("no-such-distribution") == ()


def test_packages_are_installed_by_an_extra_where_there_is_one() -> None:
    assert install_command("trt-tandem", "openvino", ["nncf"]) == "pip install 'trt-tandem[openvino]'"
    assert install_command("trt-tandem", "other", ["one", "two"]) == "pip install one two"
    assert install_command("no-such-distribution", "openvino", ["one"]) == "pip install one"
